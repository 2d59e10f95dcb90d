"""A handler with secrets, and one without."""

import hashlib
import os
from typing import Any

import boto3
from botocore.exceptions import ClientError

KEY_AT_IMPORT = os.environ.get("VAULT_KEY")


def digests(payload: dict[str, Any]) -> dict[str, Any]:
    """Returns the digests of the secrets, or fails with the values in the message."""
    values = {name: os.environ[name] for name in ("VAULT_KEY", "VAULT_TOKEN")}
    if payload.get("fails"):
        raise ValueError(f"refused: {values}")
    found = {name: hashlib.sha256(value.encode()).hexdigest() for name, value in values.items()}
    return {**found, "at_import": os.environ["VAULT_KEY"] == KEY_AT_IMPORT}


def steal(_: dict[str, Any]) -> list[str]:
    """Tries to read the secrets of the other actor; returns the errors."""
    errors = []
    for service, call, arguments in (
        ("secretsmanager", "get_secret_value", {"SecretId": "vault/key"}),
        ("ssm", "get_parameter", {"Name": "/vault/token", "WithDecryption": True}),
    ):
        client: Any = boto3.client(service)  # type: ignore[call-overload]
        try:
            getattr(client, call)(**arguments)
            errors.append("none")
        except ClientError as error:
            errors.append(error.response["Error"]["Code"])
    return errors
