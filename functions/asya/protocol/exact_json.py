"""Reads and writes JSON of the mesh's own types, in which values of users may have an `ExactNumber` (`protocol §1.numbers`).

Values of users alone go through `strict_json`, which refuses what JSON does not have.
"""

import math
from typing import TypeVar

import msgspec
from msgspec import Raw

from asya.protocol.numbers import ExactNumber, read_number

T = TypeVar("T")


def write_exact(value: object) -> Raw:
    """The JSON text of a number that knows it: the hook of an encoder.

    Raises:
        TypeError: the value is of another type.
    """
    if isinstance(value, ExactNumber):
        return Raw(value.text.encode("ascii"))
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    raise TypeError(f"a value of type {name} has no form in JSON")


def read_exact(text: str) -> float:
    """The number of a JSON text: the hook of a decoder.

    Raises:
        ValueError: the number is out of the range of floats.
    """
    number = read_number(text)
    if math.isinf(number):
        raise ValueError("Number out of range")
    return number


def exact_decoder(kind: type[T]) -> "msgspec.json.Decoder[T]":
    """A decoder of a type whose values of any type keep their numbers."""
    return msgspec.json.Decoder(kind, float_hook=read_exact)


_encoder = msgspec.json.Encoder(enc_hook=write_exact)


def encode_json(value: object) -> bytes:
    """JSON text of a value that the mesh made or read."""
    return _encoder.encode(value)
