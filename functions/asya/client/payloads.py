"""Converts what programs send and get: models, dataclasses and plain values, as typed actors do (`protocol §6.typed`)."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, overload

import msgspec

from asya.contracts.annotations import codec_of
from asya.contracts.codec import plain
from asya.contracts.errors import ContractError
from asya.protocol.strict_json import NotJsonError, decode_exact, encode_value

T = TypeVar("T")


def encoded(payload: object) -> bytes:
    """Return a payload as JSON, in the forms in which typed actors give and take it.

    Args:
        payload: A pydantic model, a msgspec struct, a dataclass, or a value of dicts, lists, numbers and texts, with dates and
            decimals in it.

    Raises:
        ContractError: It has no form in JSON; the message names the place.
    """
    # A dataclass has the forms that its annotations say, such as a sorted array for a set.
    value = codec_of(type(payload)).dump(payload, "payload") if dataclasses.is_dataclass(payload) else payload
    try:
        return bytes(encode_value(plain(value, "payload")))
    except NotJsonError as error:
        raise ContractError(f"payload: {error}") from error


@overload
def decoded(payload: bytes, kind: None) -> Any: ...
@overload
def decoded(payload: bytes, kind: type[T]) -> T: ...
def decoded(payload: bytes, kind: type[T] | None) -> Any:
    """Return a payload as a value of a type; without one, as dicts, lists, numbers and texts.

    Raises:
        ContractError: The payload does not fit the type; the message names the field.
    """
    return msgspec.json.decode(payload) if kind is None else codec_of(kind).load(decode_exact(payload), "result")
