"""Typed handlers: converts the payload to the annotated dataclass or pydantic model (`protocol §6`)."""

import dataclasses
import inspect
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from asya.runtime.load import Handler, LoadError


def adapter(name: str, handler: Handler) -> Callable[[Any], Any]:
    """The function that converts the JSON value of a payload to the handler's argument.

    The returned function raises ValueError for a payload that does not fit the annotation; the error names the field.

    Raises:
        LoadError: the handler does not accept exactly one argument.
    """
    parameter = _only_parameter(name, handler)
    annotation = _annotation(handler, parameter)
    if hasattr(annotation, "model_validate"):
        return _pydantic_adapter(annotation)
    if dataclasses.is_dataclass(annotation):
        return _dataclass_adapter(annotation)
    return lambda payload: payload


def _only_parameter(name: str, handler: Handler) -> inspect.Parameter | None:
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):
        return None  # some callables in C have no signature; the call itself shows a mistake
    try:
        signature.bind(None)
    except TypeError as error:
        raise LoadError(
            f"handler {name!r} must take one argument, the payload; its signature is {signature}"
        ) from error
    return next(iter(signature.parameters.values()))


def _annotation(handler: Handler, parameter: inspect.Parameter | None) -> Any:
    if parameter is None or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return None
    target = handler if inspect.isroutine(handler) else type(handler).__call__
    try:
        return typing.get_type_hints(target).get(parameter.name)
    except (NameError, TypeError, AttributeError):
        return None  # an annotation that cannot be resolved at run time is ignored


def _dataclass_adapter(kind: Any) -> Callable[[Any], Any]:
    def adapt(payload: Any) -> Any:
        try:
            return msgspec.convert(payload, kind)
        except msgspec.ValidationError as error:
            problem, _, location = str(error).partition(" - at `$")
            raise ValueError(f"payload{location.rstrip('`')}: {problem}") from None

    return adapt


def _pydantic_adapter(kind: Any) -> Callable[[Any], Any]:
    def adapt(payload: Any) -> Any:
        from pydantic import ValidationError

        try:
            return kind.model_validate(payload)
        except ValidationError as error:
            details = (f"payload{_field_path(item['loc'])}: {item['msg']}" for item in error.errors())
            raise ValueError("; ".join(details)) from None

    return adapt


def _field_path(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
