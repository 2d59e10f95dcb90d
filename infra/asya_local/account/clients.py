"""Makes the boto3 clients of a local cloud."""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any

import boto3
import botocore.session
from botocore.config import Config

from asya_local.account.keys import REGION, AccessKey

_making = threading.Lock()
# The developer's own AWS configuration, in variables or files, must not reach a local cloud.
_NO_USER_CONFIGURATION = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
    "ca_bundle": (None, None, None, None),
}


def aws_client(service: str, endpoint: str, key: AccessKey, config: Config | None = None) -> Any:
    """Create a boto3 client of the local cloud with this key; ignore the developer's AWS configuration.

    Args:
        service: The name of the service.
        endpoint: The URL of the local cloud.
        key: The key.
        config: The settings of the client; they must have no proxies.
    """
    with _making:  # a session makes one client at a time
        build: Any = _session(key).client  # boto3's types accept literal service names only
        return build(service, endpoint_url=endpoint, config=config or Config(proxies={}))


@cache
def _session(key: AccessKey) -> boto3.Session:
    """Return the session of a key, which reads the model of each service once."""
    core = botocore.session.Session(session_vars=_NO_USER_CONFIGURATION)
    core.set_credentials(key.access_key, key.secret_key)
    return boto3.Session(botocore_session=core, region_name=REGION)
