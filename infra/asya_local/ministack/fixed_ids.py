"""Derives access keys and ids of HTTP APIs from the cloud's secret, so that they stay the same in each cloud of a state folder.

MiniStack draws them at random, and a program with the key or the URL of yesterday would fail.

Runs in MiniStack's process, in `.venv-cloud`. It imports nothing of this project.
"""

import hashlib
import hmac
from collections.abc import Callable
from types import ModuleType
from typing import Any


def derived(secret: str, *names: str | int) -> str:
    """Return 64 hexadecimal digits."""
    return hmac.digest(secret.encode(), "/".join(map(str, names)).encode(), hashlib.sha256).hex()


def access_key(secret: str, user: str, number: int = 0) -> tuple[str, str]:
    """Return the id and the secret key of a user's access key with this number."""
    return "AKIA" + derived(secret, "id", user, number)[:16].upper(), derived(secret, "key", user, number)[:40]


def install(iam: ModuleType, apigateway: ModuleType, secret: str) -> None:
    """Make MiniStack derive the access keys of users, and the ids of APIs in the order of their creation."""
    iam._IAM_HANDLERS["CreateAccessKey"] = _fixed_keys(iam, iam._create_access_key, secret)
    apigateway._resolve_custom_api_id = _fixed_api_ids(apigateway._resolve_custom_api_id, secret)  # type: ignore[attr-defined]


def _fixed_keys(iam: ModuleType, create: Callable[..., Any], secret: str) -> Callable[..., Any]:
    def create_access_key(parameters: Any) -> Any:
        before = set(iam._access_keys)
        status, headers, body = create(parameters)
        for drawn in set(iam._access_keys) - before:
            record = iam._access_keys.pop(drawn)
            number = 0
            while access_key(secret, record["UserName"], number)[0] in iam._access_keys:
                number += 1
            key_id, key = access_key(secret, record["UserName"], number)
            body = body.replace(drawn.encode(), key_id.encode()).replace(
                record["SecretAccessKey"].encode(), key.encode()
            )
            iam._access_keys[key_id] = {**record, "AccessKeyId": key_id, "SecretAccessKey": key}
        return status, headers, body

    return create_access_key


def _fixed_api_ids(resolve: Callable[..., Any], secret: str) -> Callable[..., Any]:
    def resolve_custom_api_id(tags: Any, existing: Any) -> Any:
        if custom := resolve(tags, existing):
            return custom
        number = 0
        while (api_id := derived(secret, "api", number)[:8]) in existing:
            number += 1
        return api_id

    return resolve_custom_api_id
