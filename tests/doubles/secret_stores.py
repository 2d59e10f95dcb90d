"""Secrets Manager and Parameter Store in memory; they refuse on demand."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.function.aws import clients


@dataclass
class SecretStores:
    """The clients of both services.

    Attributes:
        secrets: the values of Secrets Manager by name; bytes are a binary secret.
        parameters: the values of Parameter Store by name.
        error: raised by every call, if set.
        calls: the names that were read.
    """

    secrets: dict[str, str | bytes] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    error: Exception | None = None
    calls: list[str] = field(default_factory=list)

    def get_secret_value(self, *, SecretId: str) -> dict[str, Any]:  # noqa: N803 - as in boto3
        """See Secrets Manager."""
        value = self._read(SecretId, self.secrets, "ResourceNotFoundException")
        return {"SecretBinary": value} if isinstance(value, bytes) else {"SecretString": value}

    def get_parameter(self, *, Name: str, WithDecryption: bool) -> dict[str, Any]:  # noqa: N803 - as in boto3
        """See Systems Manager."""
        value = self._read(Name, self.parameters, "ParameterNotFound")
        return {"Parameter": {"Value": value if WithDecryption else "encrypted"}}

    def _read(self, name: str, values: Any, missing: str) -> Any:
        self.calls.append(name)
        if self.error is not None:
            raise self.error
        if name not in values:
            raise service_error(missing)
        return values[name]


def service_error(code: str, status: int = 400) -> ClientError:
    """An error of the service, with the HTTP status of its answer."""
    response: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "Get")


def install_secret_stores(monkeypatch: pytest.MonkeyPatch) -> SecretStores:
    """Replace the clients of both services."""
    stores = SecretStores()
    monkeypatch.setattr(clients, "secrets_manager", lambda: stores)
    monkeypatch.setattr(clients, "ssm", lambda: stores)
    return stores
