"""Runs the server of the console on a socket that is listening already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_GRACE_SECONDS = 1
"""How long open streams may hold up the end of the server."""


def make_server(console: ASGIApp) -> uvicorn.Server:
    """Return the server; `run` ends at SIGINT and SIGTERM, or when `should_exit` is set."""
    return uvicorn.Server(
        uvicorn.Config(
            console,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )
