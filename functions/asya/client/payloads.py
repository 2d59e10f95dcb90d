"""Converts what programs send and get: models, dataclasses and plain values, as typed actors do (`protocol §6.typed`)."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import msgspec

from asya.contracts.annotations import codec_of
from asya.contracts.codec import plain

T = TypeVar("T")


def encoded(payload: object) -> bytes:
    """Return a payload as JSON, in the forms in which typed actors give and take it.

    Args:
        payload: A pydantic model, a msgspec struct, a dataclass, or a value of dicts, lists, numbers and texts, with dates and
            decimals in it.

    Raises:
        ContractError: It has no form in JSON.
    """
    return msgspec.json.encode(plain(payload, "payload"))


@overload
def decoded(payload: bytes, kind: None) -> Any: ...
@overload
def decoded(payload: bytes, kind: type[T]) -> T: ...
def decoded(payload: bytes, kind: type[T] | None) -> Any:
    """Return a payload as a value of a type; without one, as dicts, lists, numbers and texts.

    Raises:
        ContractError: The payload does not fit the type; the message names the field.
    """
    value = msgspec.json.decode(payload)
    return value if kind is None else codec_of(kind).load(value, "result")
