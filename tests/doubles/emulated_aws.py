"""An AWS account in memory (moto), behind the clients of `asya.function.aws.clients`."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from moto import mock_aws

from asya.function.aws import clients

_CLIENTS = (clients.sqs, clients.s3, clients.dynamodb, clients.logs, clients.cloudwatch)


@contextmanager
def emulated_aws(monkeypatch: pytest.MonkeyPatch, region: str = "us-east-1") -> Iterator[None]:
    """Start an empty account; clients created inside do not leave it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    with mock_aws():
        _clear_clients()
        yield
        _clear_clients()


def _clear_clients() -> None:
    for client in _CLIENTS:
        client.cache_clear()
