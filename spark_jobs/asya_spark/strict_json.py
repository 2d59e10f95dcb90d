"""Values to JSON without loss, or a clear refusal (`protocol §1`), by the standard library alone."""

import json
import math
from typing import Any


class NotJsonError(TypeError):
    """A value that JSON cannot hold: names its type and the path to it."""


def encode(value: Any) -> str:
    """JSON text of a value, ASCII only.

    Raises:
        NotJsonError: for NaN, infinities, keys that are no strings, bytes, sets and anything else JSON has no form for.
    """
    try:
        return json.dumps(_plain(value, "$"), allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise NotJsonError("the value is nested too deeply, or contains itself") from None


def check_text(text: str) -> str:
    """Return `text` if it is JSON, as rows of a DataFrame carry it.

    Raises:
        ValueError: if it is not.
    """
    return encode(json.loads(text, parse_constant=_refuse_constant))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} has no form in JSON")


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
            return float(value)
        case dict():
            return {_key(key, path): _plain(item, _below(path, key)) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
        case _:
            raise NotJsonError(f"{path}: a value of type {_type_name(value)} has no form in JSON")


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


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
