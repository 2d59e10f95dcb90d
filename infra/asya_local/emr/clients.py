"""boto3 clients of MiniStack for the stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import botocore.loaders
import botocore.session

if TYPE_CHECKING:
    from asya_local.emr.settings import EmrSettings

_LOADER = botocore.loaders.create_loader()


def client(service: str, settings: EmrSettings, keys: dict[str, str] | None = None) -> Any:
    """Create a client of MiniStack. Times in its responses are texts.

    Args:
        service: The service.
        settings: The endpoint and the region.
        keys: The credentials of an assumed role, as STS returns them. Root's are the default.
    """
    core = botocore.session.get_session()
    # The models of the services are parsed once. Each thread that parsed its own would keep their memory.
    core.register_component("data_loader", _LOADER)
    # Nothing here reads times, and to parse them takes most of a list's time. A job may wait for lists between two commands.
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=str)
    return core.create_client(
        service,
        region_name=settings.region,
        endpoint_url=settings.aws_endpoint,
        aws_access_key_id=keys["AccessKeyId"] if keys else None,
        aws_secret_access_key=keys["SecretAccessKey"] if keys else None,
        aws_session_token=keys["SessionToken"] if keys else None,
    )
