"""Lossless JSON: converts values without loss, or refuses them with an error (`protocol §1`).

msgspec is fast but lenient: it writes NaN as null, sets as lists, bytes as base64 and `{1: 2}` as `{"1": 2}`. Decoding the
output and comparing it detects all of these, and costs much less than a walk through the value. Only a failed comparison
starts the walk, which finds the path for the error.
"""

import json
import math
import re

import msgspec
from msgspec import Raw

from asya.protocol.exact_json import read_exact, write_exact
from asya.protocol.numbers import Digits

_encoder = msgspec.json.Encoder(enc_hook=write_exact)
_decoder: msgspec.json.Decoder[object] = msgspec.json.Decoder()
_exact_decoder: msgspec.json.Decoder[object] = msgspec.json.Decoder(float_hook=read_exact)
# Finds all numbers that a float would not give back, and some others: numbers with a zero at the end, with an exponent, or with
# eight digits before or after the point. A number with sixteen digits has eight of them on one side.
_INEXACT = re.compile(rb"\.(?:\d+0(?!\d)|\d{8}|(?<=\d{8}\.)|\d+[eE])")
_EXPONENTS = (re.compile(rb"E[-+\d]"), re.compile(rb"e[-+\d]"))
_NON_ASCII = re.compile(r"[^\x00-\x7f]")


class NotJsonError(TypeError):
    """JSON cannot hold a value; the message names its type and its path."""


def encode_value(value: object) -> Raw:
    """JSON text of a value, ASCII only, because SQS accepts XML characters only.

    Raises:
        NotJsonError: the value contains NaN, an infinity, a key that is not a string, bytes, a set or another type.
    """
    try:
        text = _encoder.encode(value)
        if _decoder.decode(text) == value:
            return Raw(escape(text))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        pass  # the walk below converts the value, or names its path in the error
    try:
        plain = _plain(value, "$")
        text = json.dumps(plain, allow_nan=False, separators=(",", ":")).encode("ascii")
    except RecursionError:
        raise NotJsonError("the value is nested too deeply, or contains itself") from None
    except ValueError as error:  # an integer of more digits than Python writes
        raise NotJsonError(str(error)) from None
    return Raw(text)


def encode_exact(value: object) -> Raw:
    """JSON text, ASCII only, of a value that the mesh has read (`decode_exact`). Its numbers keep their texts."""
    return Raw(escape(_encoder.encode(value)))


def decode_value(raw: Raw | bytes) -> object:
    """The value of JSON text.

    Raises:
        ValueError: the text is malformed, nested too deeply, or has a number out of range.
    """
    return _decoded(_decoder, raw)


def decode_exact(raw: Raw | bytes) -> object:
    """The value of JSON text, in which numbers that a float would not give back are an `ExactNumber`.

    Raises:
        ValueError: as `decode_value`.
    """
    return _decoded(_exact_decoder, raw)


def decode_untyped(raw: Raw | bytes) -> tuple[object, Digits | None]:
    """The value of JSON text with plain floats, and the digits that these would not give back; None without any.

    Raises:
        ValueError: as `decode_value`.
    """
    value, text = decode_value(raw), memoryview(raw)
    # Reading each number by its text takes a quarter of a microsecond more. What the mesh writes has no white space, so it is
    # written again faster than it is searched. A buffer of its size need not grow meanwhile.
    written = bytearray(len(text))
    _encoder.encode_into(value, written)
    if written == text:
        return value, None
    if _INEXACT.search(text) is None and all(each.search(text) is None for each in _EXPONENTS):
        return value, None
    digits = Digits()
    decoder: msgspec.json.Decoder[object] = msgspec.json.Decoder(float_hook=lambda text: _in_range(digits.read(text)))
    return _decoded(decoder, raw), digits


def _in_range(number: float) -> float:
    if math.isinf(number):
        raise ValueError("Number out of range")
    return number


def _decoded(decoder: "msgspec.json.Decoder[object]", raw: Raw | bytes) -> object:
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error


def escape(text: bytes) -> bytes:
    r"""The same JSON with all characters outside ASCII as `\uXXXX`; JSON has such characters in strings only."""
    if text.isascii():
        return text
    return _NON_ASCII.sub(_escaped, text.decode("utf-8")).encode("ascii")


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


def _plain(value: object, path: str) -> object:
    """The value in plain dicts, lists, strings and numbers; tuples become lists."""
    match value:
        case None | bool():
            return value
        case str():
            return _plain_text(value, path)
        case int():
            return int(value)
        case float():
            if not math.isfinite(value):
                raise NotJsonError(f"{path}: {value} has no form in JSON")
            return float(value)
        case dict():
            for key in value:
                if not isinstance(key, str):
                    raise NotJsonError(f"{path}: the key {key!r} is of type {_type_name(key)}; JSON keys are strings")
            return {_plain_text(key, path): _plain(item, _child_path(path, key)) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
        case _:
            raise NotJsonError(f"{path}: a value of type {_type_name(value)} has no form in JSON{_advice(value)}")


def _plain_text(text: str, path: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotJsonError(f"{path}: the text holds half a surrogate pair") from None
    return str.__str__(text)  # the text of an enum member; str() would return its name


def _child_path(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)}]"


def _advice(value: object) -> str:
    """What turns the value into JSON: arrays of NumPy, pandas and PyTorch have a method for it."""
    return "; return its tolist()" if hasattr(type(value), "tolist") else ""


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
