"""AWS's services in memory (moto), spoken to by the process's own clients."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from moto import mock_aws

from asya.messaging.aws import clients

_CLIENTS = (clients.sqs, clients.s3, clients.dynamodb)


@contextmanager
def emulated_aws(monkeypatch: pytest.MonkeyPatch, region: str = "us-east-1") -> Iterator[None]:
    """An account with nothing in it; the process's clients are made anew within, and left to nobody else."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    with mock_aws():
        _forget_clients()
        yield
        _forget_clients()


def _forget_clients() -> None:
    for made in _CLIENTS:
        made.cache_clear()
