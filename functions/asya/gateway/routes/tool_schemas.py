"""Validating a tool's arguments against its JSON Schema, whatever its draft (`protocol §13`, tools).

The validator travels with the gateway's API function only, and is loaded with the first call of a tool.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from jsonschema_rs import Validator

# More than a person mends at once.
PROBLEMS_LIMIT = 20
_MESSAGE_LIMIT = 500


def validate(schema: dict[str, object], arguments: Any) -> Sequence[tuple[str, str]]:
    """What is wrong with arguments: where, and what; empty if nothing is."""
    errors = _validator(msgspec.json.encode(schema, order="deterministic")).iter_errors(arguments)
    return [(_place(error.instance_path), error.message[:_MESSAGE_LIMIT]) for error in islice(errors, PROBLEMS_LIMIT)]


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> "Validator":
    import jsonschema_rs

    return jsonschema_rs.validator_for(msgspec.json.decode(schema), retriever=_retrieve_nothing)


def _retrieve_nothing(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched: a tool's schema holds all that it refers to")


def _place(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")
