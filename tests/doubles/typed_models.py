"""A type with one field `x`, made with each library that the contracts know."""

import dataclasses
from typing import Any, TypedDict

import msgspec
import pydantic
import pydantic.dataclasses


def pydantic_model(kind: Any) -> Any:
    """A model of pydantic."""
    return pydantic.create_model("Model", x=(kind, ...))


def struct(kind: Any) -> Any:
    """A struct of msgspec."""
    return msgspec.defstruct("Struct", [("x", kind)])


def dataclass(kind: Any) -> Any:
    """A dataclass."""
    return dataclasses.make_dataclass("Record", [("x", kind)])


def typed_dict(kind: Any) -> Any:
    """A typed dict."""
    return TypedDict("Dict", {"x": kind})  # type: ignore[operator]


def pydantic_dataclass(kind: Any) -> Any:
    """A dataclass of pydantic."""
    return pydantic.dataclasses.dataclass(dataclasses.make_dataclass("Record", [("x", kind)]))
