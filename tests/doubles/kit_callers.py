"""Callers of the gateway of the test kit, each with a key of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.credentials import Credentials

from asya.testing.services.functions import ACCOUNT, REGION
from asya.testing.services.gateway import URL
from tests.cloud.callers import ApiCaller

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.testing import Mesh

_KEY = re.compile(r"Credential=([^/]+)/")


@dataclass(frozen=True)
class KitPool:
    """In the place of HTTP connections: each request goes to its function. The key of its signature names the user."""

    kit: Mesh

    def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"", **_: object
    ) -> SimpleNamespace:
        """Makes a request; see `urllib3.PoolManager`."""
        lower = {name.lower(): value for name, value in headers.items()}
        match, parts = _KEY.search(lower.get("authorization", "")), urlsplit(url)
        name = match[1] if match is not None else ""
        response = self.kit.cloud.request(
            method,
            parts.path + (f"?{parts.query}" if parts.query else ""),
            body,
            lower,
            user_arn=f"arn:aws:iam::{ACCOUNT}:user/{name}" if name else "",
            user_id=f"AIDA{name.upper()}",
        )
        text = str(response.get("body") or "")
        return SimpleNamespace(status=response["statusCode"], data=text.encode(), headers=response.get("headers", {}))


class KitCaller(ApiCaller):
    """A caller without HTTP."""

    def transport(self, library: Any) -> Any:
        pool = self.pool

        class Transport(library.AsyncBaseTransport):  # type: ignore[name-defined,misc]
            async def handle_async_request(self, request: Any) -> Any:
                body, url = await request.aread(), str(request.url)
                response = pool.request(request.method, url, headers=dict(request.headers), body=body)
                return library.Response(response.status, headers=response.headers, content=response.data)

        return Transport()


def kit_user(kit: Mesh, name: str) -> ApiCaller:
    """An IAM user that may call the API."""
    pool: Any = KitPool(kit)
    return KitCaller(URL, REGION, Credentials(name, "secret"), pool=pool)
