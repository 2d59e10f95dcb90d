"""boto3 clients of the local cloud's own services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3

if TYPE_CHECKING:
    from asya_local.emr.settings import EmrSettings


def client(service: str, settings: EmrSettings, keys: dict[str, str] | None = None) -> Any:
    """A client of MiniStack: with root's keys, or with those of an assumed role as STS gives them."""
    session = boto3.Session(
        aws_access_key_id=keys["AccessKeyId"] if keys else None,
        aws_secret_access_key=keys["SecretAccessKey"] if keys else None,
        aws_session_token=keys["SessionToken"] if keys else None,
        region_name=settings.region,
    )
    build: Any = session.client  # the service's name is not known to the types
    return build(service, endpoint_url=settings.aws_endpoint)
