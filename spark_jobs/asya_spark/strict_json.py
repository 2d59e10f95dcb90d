"""Encodes values as JSON without loss, or raises (`protocol §1`); needs only the standard library."""

import json
import math
from typing import Any

from asya.protocol.numbers import ExactNumber, json_text, read_number


class NotJsonError(TypeError):
    """JSON cannot hold a value; the message names its type and path."""


def encode(value: Any) -> str:
    """JSON text of a value, ASCII only.

    Raises:
        NotJsonError: for NaN, infinities, keys that are not strings, bytes, sets and other types.
    """
    try:
        return json_text(_plain(value, "$"), separators=(",", ":"))
    except RecursionError:
        raise NotJsonError("the value is nested too deeply, or contains itself") from None


def check_text(text: str) -> str:
    """Validates JSON text of a DataFrame row and returns it in canonical form; numbers keep their digits.

    Raises:
        ValueError: if it is not JSON.
        NotJsonError: if a number is NaN, infinite or out of range; the error names its path.
    """
    return encode(json.loads(text, parse_float=read_number))


def _plain(value: Any, path: str) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, path)
        case int():
            return int(value)
        case float():
            if not math.isfinite(value):
                raise NotJsonError(f"{path}: {value} has no form in JSON")
            return value if isinstance(value, ExactNumber) else float(value)
        case dict():
            return {_key(key, path): _plain(item, _below(path, key)) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
        case _:
            raise NotJsonError(f"{path}: a value of type {_type_name(value)} has no form in JSON{_advice(value)}")


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise NotJsonError(f"{path}: the key {key!r} is of type {_type_name(key)}; JSON keys are strings")
    return _text(key, path)


def _text(text: str, path: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotJsonError(f"{path}: the text holds half a surrogate pair") from None
    return str(text)


def _below(path: str, key: Any) -> str:
    return f"{path}.{key}" if isinstance(key, str) and key.isidentifier() else f"{path}[{json.dumps(str(key))}]"


def _advice(value: Any) -> str:
    """What turns the value into JSON: arrays of NumPy, pandas and PyTorch have a method for it."""
    return "; return its tolist()" if hasattr(type(value), "tolist") else ""


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
