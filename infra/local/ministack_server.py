"""MiniStack behind what stands before every AWS endpoint: TLS, and refusal of well-known keys.

Runs in the local cloud's own virtual environment, started by `infra.local.ministack`; imports nothing of ours.

Buckets of the CDK and of the mesh refuse requests that came without TLS (`aws:SecureTransport`). On loopback there
is nothing to encrypt, so this wrapper says of each request what a TLS-terminating proxy would say. MiniStack also
takes the access key `test`, or any twelve digits, for its root user without looking at the signature; where IAM is
enforced that would be an open door, so it is shut here.
"""

import asyncio
import os
import re
import resource
from typing import Any

from hypercorn.asyncio import serve  # type: ignore[import-not-found,unused-ignore]
from hypercorn.config import Config  # type: ignore[import-not-found,unused-ignore]
from ministack.app import AUTH, app

_OPEN_DOOR = re.compile(rb"Credential=(test|\d{12})/")
_REFUSAL = (
    b'{"__type": "InvalidClientTokenId", "message": "The security token included in the request is invalid: '
    b'the local cloud enforces IAM and takes only the keys it issued (see local.json)."}'
)


async def behind_tls(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The ASGI application: MiniStack's, with the proxy's header added to every request."""
    if scope["type"] != "http":
        await app(scope, receive, send)
        return
    headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"x-forwarded-proto"]
    authorization = next((value for name, value in headers if name.lower() == b"authorization"), b"")
    if AUTH and _OPEN_DOOR.search(authorization):
        start = {"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"application/json")]}
        await send(start)
        await send({"type": "http.response.body", "body": _REFUSAL})
        return
    await app({**scope, "headers": [*headers, (b"x-forwarded-proto", b"https")]}, receive, send)


def main() -> None:
    """Serve until SIGTERM; the address comes from BIND_HOST and GATEWAY_PORT, as MiniStack's own."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    config = Config()
    config.bind = [f"{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    config.loglevel = os.environ.get("LOG_LEVEL", "INFO")
    asyncio.run(serve(behind_tls, config))


if __name__ == "__main__":
    main()
