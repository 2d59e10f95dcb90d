"""What all unit tests share: hypothesis without deadlines, and what of AWS's SDK is dear to make and never changes."""

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace

import boto3
import botocore.session
import pytest
from hypothesis import settings

# How long an example takes says something about the machine only.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")


@pytest.fixture(scope="session", autouse=True)
def one_reading_of_the_service_models() -> Iterator[None]:
    """Cache the loader: moto gives each test a session, and each session reads megabytes of the same JSON."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_session_to_sign_with() -> Iterator[None]:
    """A function makes one in its life; the tests make hundreds of functions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "asya.sidecar.lambdas.services.boto3", SimpleNamespace(DEFAULT_SESSION=None, Session=cache(boto3.Session))
        )
        yield
