"""Fixtures of all unit tests: hypothesis without deadlines, and cached parts of the AWS SDK that are slow to create."""

import time
from collections.abc import Iterator
from functools import cache

import boto3
import botocore.hooks
import botocore.session
import botocore.useragent
import moto.core.models
import moto.core.responses
import moto.kms.models
import moto.s3.models
import moto.s3.urls
import moto.sqs.models
import pytest
import typer.testing
from botocore.hooks import EventAliaser
from hypothesis import settings

from asya.function.aws import clients
from asya.function.aws.outage_notes import SERVICES
from asya.function.aws.outages import ServiceHealth
from tests.doubles.senders import known_secrets as known_secrets  # noqa: PLC0414
from tests.doubles.senders import listed_roles as listed_roles  # noqa: PLC0414

# The duration of an example depends on the machine only.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")


@pytest.fixture(scope="session", autouse=True)
def cached_service_models() -> Iterator[None]:
    """Cache the loader: moto creates a session per test, and each session reads megabytes of the same JSON."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield


@pytest.fixture(scope="session", autouse=True)
def cached_signing_session() -> Iterator[None]:
    """Cache the session: a deployed function creates one, but the tests create hundreds of functions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clients, "credentials_source", cache(boto3.Session))
        yield


@pytest.fixture(scope="session", autouse=True)
def light_moto() -> Iterator[None]:
    """Leave out what moto prepares for each account and no test uses.

    It makes an RSA key for each key of KMS, also for an HMAC key, and registers thousands of addresses with the library
    `requests`, which the mesh does not call AWS with.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moto.kms.models, "generate_private_key", cache(moto.kms.models.generate_private_key))
        patch.setattr(moto.core.models, "RESPONSES_METHODS", [])
        underscored = cache(moto.core.responses.camelcase_to_underscores)
        patch.setattr(moto.core.responses, "camelcase_to_underscores", underscored)
        patch.setattr(moto.sqs.models, "camelcase_to_underscores", underscored)
        patch.setattr(
            moto.core.responses, "method_names_from_class", cache(moto.core.responses.method_names_from_class)
        )
        yield


@pytest.fixture(scope="session", autouse=True)
def cached_user_agent() -> Iterator[None]:
    """Cache the words of the user agent: botocore checks each of their characters, twice for each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            botocore.useragent,
            "sanitize_user_agent_string_component",
            cache(botocore.useragent.sanitize_user_agent_string_component),
        )
        yield


@pytest.fixture(scope="session", autouse=True)
def cached_event_names() -> Iterator[None]:
    """Cache the names of botocore's events: for each event of each call it goes through two hundred aliases.

    All sessions have the same aliases.
    """
    alias = EventAliaser._alias_event_name
    known: dict[str, str] = {}

    def cached(aliaser: EventAliaser, name: str) -> str:
        if name not in known:
            known[name] = alias(aliaser, name)
        return known[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventAliaser, "_alias_event_name", cached)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_clients() -> Iterator[None]:
    """Leave out what each new client and each call of S3 repeats.

    botocore inspects the signature of each of its own handlers for each client, and moto loads the addresses of S3 again for
    each call, for endpoints that no test has.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.hooks.BaseEventHooks, "_verify_accept_kwargs", lambda *_: None)
        patch.setattr(moto.s3.models.S3Backend, "_url_module", moto.s3.urls)
        yield


@pytest.fixture(scope="session", autouse=True)
def cached_command() -> Iterator[None]:
    """Cache the command: typer builds all commands of `asya` again for each call by a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.testing._get_command))
        yield


@pytest.fixture(autouse=True)
def healthy_services(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test meet a service that was off in another one: a function's process is that of the tests here."""
    for service in SERVICES:
        clients.HEALTH.answered(service)
    monkeypatch.setattr(clients, "HEALTH", ServiceHealth(time.time))
