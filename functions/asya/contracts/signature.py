"""How a function is called. Without imports of types, because most handlers need no more."""

import inspect
from collections.abc import Callable
from typing import Any


class SignatureError(TypeError):
    """A function cannot be called with a payload."""


def is_annotated(function: Callable[..., Any]) -> bool:
    """Whether a function says anything of its types."""
    return bool(getattr(annotated_part(function), "__annotations__", None))


def annotated_part(function: Callable[..., Any]) -> Any:
    """The function or method with the annotations: a callable object has them at its class."""
    return function if inspect.isroutine(function) else type(function).__call__


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature; None for some callables in C. Their call itself shows a mistake."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def check_one_argument(signature: inspect.Signature | None, given: int = 0) -> None:
    """Check that a function can be called with one payload.

    Args:
        signature: its signature; None if unknown.
        given: how many arguments come before the payload.

    Raises:
        SignatureError: it cannot.
    """
    if signature is None:
        return
    try:
        signature.bind(*(None for _ in range(given + 1)))
    except TypeError as error:
        raise SignatureError(
            f"must take one argument, the payload; its signature is {signature}. Several parameters are keys of the "
            "payload if they are annotated"
        ) from error
