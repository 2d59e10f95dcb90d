"""Validates a tool's arguments against its JSON Schema of any draft (`protocol §13`, tools). Formats are asserted.

Only the API function has the validator; the first call of a tool loads it.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from asya.contracts.forms import FORMS
from asya.protocol.numbers import with_decimals

if TYPE_CHECKING:
    from jsonschema_rs import Validator

PROBLEMS_LIMIT = 20
_MESSAGE_LIMIT = 500  # characters

# The validator has these itself.
_KNOWN_FORMATS = ("date", "date-time", "time", "uuid", "ipv4", "ipv6")
_OWN_FORMATS = {name: form.has for name, form in FORMS.items() if name not in _KNOWN_FORMATS}


def validate(schema: dict[str, object], arguments: Any) -> Sequence[tuple[str, str]]:
    """Validate arguments, each number by its text: (path, message) for each problem."""
    errors = _validator(msgspec.json.encode(schema, order="deterministic")).iter_errors(with_decimals(arguments))
    return [(_path(error.instance_path), error.message[:_MESSAGE_LIMIT]) for error in islice(errors, PROBLEMS_LIMIT)]


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> "Validator":
    import jsonschema_rs

    return jsonschema_rs.validator_for(
        msgspec.json.decode(schema), validate_formats=True, formats=_OWN_FORMATS, retriever=_retrieve_nothing
    )


def _retrieve_nothing(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched; a tool's schema must contain the schemas that it refers to")


def _path(parts: Sequence[str | int]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")
