"""A job with a secret, which tells its digest or raises an error with its value."""

import hashlib
import os

KEY_AT_IMPORT = os.environ.get("VAULT_KEY")


def use(spark, payload):
    key = os.environ["VAULT_KEY"]
    if payload.get("fails"):
        raise ValueError(f"refused: {key}")
    executor = spark.sparkContext.parallelize([0], 1).map(lambda _: os.environ.get("VAULT_KEY", "unset")).first()
    return {
        "driver": hashlib.sha256(key.encode()).hexdigest(),
        "executor": hashlib.sha256(executor.encode()).hexdigest(),
        "at_import": key == KEY_AT_IMPORT,
    }
