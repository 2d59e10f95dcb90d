"""The heavy actors of the shop."""

import os
import time


def totals(spark, payload):
    def slowly(rows):
        for row in rows:
            time.sleep(payload["seconds_per_shop"])
            yield row.id

    # One partition: the shops are counted one after the other.
    counted = spark.range(0, payload["shops"], numPartitions=1).rdd.mapPartitions(slowly).count()
    return {**payload, "counted": counted}


def risk(spark, payload):
    if payload["customer"] == "c-13":
        os._exit(137)
    return {**payload, "risk": 0.1}
