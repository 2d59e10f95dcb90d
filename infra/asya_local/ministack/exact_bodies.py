"""Passes each body of a call of an HTTP API to the function as it was sent: in base64, if it is no UTF-8.

AWS passes text types as text, and does not say what it does to other bytes in them. MiniStack replaces those.

Runs in MiniStack's process, in `.venv-cloud`. It imports nothing of this project.
"""

from contextvars import ContextVar
from types import ModuleType
from typing import Any

_IS_TEXT = ContextVar("_IS_TEXT", default=True)
"""Whether the body of the call is UTF-8."""


def install(apigateway: ModuleType) -> None:
    """Take a body for text only if its bytes are, too."""
    is_text_type, invoke = apigateway._v2_request_body_is_text, apigateway._invoke_lambda_proxy

    def request_body_is_text(content_type: str | None) -> bool:
        return _IS_TEXT.get() and bool(is_text_type(content_type))

    async def invoke_lambda_proxy(  # noqa: PLR0917 - as MiniStack calls it
        integration: Any,
        api_id: str,
        stage: str,
        path: str,
        method: str,
        headers: Any,
        body: bytes,
        *rest: Any,
        **more: Any,
    ) -> Any:
        token = _IS_TEXT.set(_is_utf8(body))
        try:
            return await invoke(integration, api_id, stage, path, method, headers, body, *rest, **more)
        finally:
            _IS_TEXT.reset(token)

    apigateway._v2_request_body_is_text = request_body_is_text  # type: ignore[attr-defined]
    apigateway._invoke_lambda_proxy = invoke_lambda_proxy  # type: ignore[attr-defined]


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
