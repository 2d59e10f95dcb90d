"""MiniStack behind what stands before every AWS endpoint: TLS, and refusal of well-known keys.

Runs in the local cloud's own virtual environment, started by `asya_local.ministack`; imports nothing of ours.

Buckets of the CDK and of the mesh refuse requests that came without TLS (`aws:SecureTransport`). On loopback there
is nothing to encrypt, so this wrapper says of each request what a TLS-terminating proxy would say; but for calls of HTTP APIs,
whose functions make links of it. MiniStack also
takes the access key `test`, or any twelve digits, for its root user without looking at the signature; where IAM is
enforced that would be an open door, so it is shut here.

For the tokens of people (JWT) it would take a library that is not there, and refuse all: the local cloud has its own, which is
as strict as API Gateway.

And a machine is no region: MiniStack starts a process for every call that comes while others are busy, and processes that
start keep each other busy, so that more calls come in the meantime. Here a call waits for one of a few.
"""

import asyncio
import os
import re
import resource
import runpy
import threading
from pathlib import Path
from typing import Any

from hypercorn.asyncio import serve  # type: ignore[import-not-found,unused-ignore]
from hypercorn.config import Config  # type: ignore[import-not-found,unused-ignore]
from ministack.app import AUTH, app
from ministack.core import lambda_runtime
from ministack.services import apigateway, lambda_svc

_OPEN_DOOR = re.compile(rb"Credential=(test|\d{12})/")
_REFUSAL = (
    b'{"__type": "InvalidClientTokenId", "message": "The security token included in the request is invalid: '
    b'the local cloud enforces IAM and takes only the keys it issued (see local.json)."}'
)

# Processes of one function. None of ours calls itself and waits, so none waits for itself.
_PROCESSES = max(4, 2 * (os.cpu_count() or 1))
_freed = threading.Condition()
_acquire, _release = lambda_svc.acquire_worker, lambda_svc.release_worker


def acquire_worker(*function: Any, qualifier: str = "$LATEST", **_: Any) -> Any:
    """MiniStack's, but that it waits where there are enough."""
    with _freed:
        while True:
            worker, how = _acquire(*function, qualifier=qualifier, max_concurrency=_PROCESSES)
            if worker is not None:
                return worker, how
            _freed.wait(1.0)  # one that died is not given back


def release_worker(worker: Any) -> None:
    """MiniStack's, told to those who wait."""
    _release(worker)
    with _freed:
        _freed.notify_all()


lambda_svc.acquire_worker, lambda_svc.release_worker = acquire_worker, release_worker

runpy.run_path(str(Path(__file__).with_name("code_cache.py")))["install"](lambda_runtime)

_signatures = runpy.run_path(str(Path(__file__).with_name("token_signatures.py")))
apigateway._verify_rs256_signature = _signatures["is_signed"]


async def behind_tls(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The ASGI application: MiniStack's, with the proxy's header added to every request."""
    if scope["type"] != "http":
        await app(scope, receive, send)
        return
    headers = [(name, value) for name, value in scope["headers"] if not name.lower().startswith(b"x-forwarded-p")]
    authorization = next((value for name, value in headers if name.lower() == b"authorization"), b"")
    if AUTH and _OPEN_DOOR.search(authorization):
        start = {"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"application/json")]}
        await send(start)
        await send({"type": "http.response.body", "body": _REFUSAL})
        return
    host = next((value for name, value in headers if name.lower() == b"host"), b"")
    if scope["path"].startswith("/_aws/execute-api/") or b".execute-api." in host:
        # What an HTTP API tells its functions, who make links of it.
        proxy = [(b"x-forwarded-proto", b"http"), (b"x-forwarded-port", os.environ["GATEWAY_PORT"].encode())]
    else:
        proxy = [(b"x-forwarded-proto", b"https")]
    await app({**scope, "headers": [*headers, *proxy]}, receive, send)


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
