"""The requests of the client, from the declarations of the gateway's calls."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.api_call import ApiCall


def to(call: ApiCall, query: Mapping[str, str] | None = None, /, **variables: str) -> tuple[str, str]:
    """Return the method and the path of a request.

    Args:
        call: the call, as its capability declares it.
        query: its parameters.
        variables: what stands for the names in braces of its path.

    Raises:
        KeyError: the path has a name that `variables` lacks.
    """
    parts = (quote(variables[part[1:-1]], safe="") if part.startswith("{") else part for part in call.path.split("/"))
    return call.method, "/".join(parts) + (f"?{urlencode(query)}" if query else "")
