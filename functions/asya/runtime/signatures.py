"""Typed handlers: holds a handler to its annotations (`protocol §6.typed`)."""

from collections.abc import Callable
from typing import Any

import msgspec

from asya.contracts.signature import SignatureError, check_one_argument, is_annotated, signature_of
from asya.runtime.load import Handler, LoadError
from asya.runtime.modes import EnvelopeMode, Mode, PayloadMode


class TypedHandler(msgspec.Struct, frozen=True):
    """A handler, and the mode that converts its argument and its results.

    Attributes:
        call: takes the argument that the mode makes.
    """

    call: Handler
    mode: Mode


def typed(name: str, handler: Handler, mode: str = "payload", *, lists_fan_out: bool = False) -> TypedHandler:
    """Hold a handler to its annotations. One without annotations is called as it is.

    Args:
        name: the name of the handler.
        handler: the handler.
        mode: `handler_mode`; only handlers of payloads are typed.
        lists_fan_out: whether each item of a returned list is a frame.

    Raises:
        LoadError: the handler cannot be called with one payload, or it is typed and gets envelopes.
    """
    try:
        if not is_annotated(handler):
            check_one_argument(signature_of(handler))
            return TypedHandler(handler, PayloadMode() if mode == "payload" else _envelope_mode(mode))
        # Imported late, because most of a cold start is imports.
        from asya.contracts.function import contract_of

        contract = contract_of(handler, lists_fan_out=lists_fan_out)
    except SignatureError as error:
        raise LoadError(f"handler {name!r} {error}") from error
    if mode != "payload":
        _check_envelopes(name, mode, contract.payload, is_keyed=contract.keys is not None)
        return TypedHandler(handler, _envelope_mode(mode))
    converts_payload = contract.payload is not None or contract.keys is not None
    payload_mode = PayloadMode(
        contract.arguments if converts_payload else None,
        contract.dumped if contract.result is not None else None,
        has_decimals=contract.has_decimals,
    )
    return TypedHandler(handler if contract.keys is None else _by_name(handler), payload_mode)


def _envelope_mode(mode: str) -> EnvelopeMode:
    return EnvelopeMode("envelope" if mode == "envelope" else "envelope-v1")


def _by_name(handler: Callable[..., Any]) -> Handler:
    def call(arguments: dict[str, Any]) -> Any:
        return handler(**arguments)

    return call


def _check_envelopes(name: str, mode: str, payload: Any, *, is_keyed: bool) -> None:
    """Refuse models where a handler gets an envelope, which is a dict."""
    from asya.contracts.codec import AnyCodec
    from asya.contracts.containers import ObjectCodec, RecordCodec

    is_dict = isinstance(payload, AnyCodec | ObjectCodec) or (isinstance(payload, RecordCodec) and payload.is_dict)
    if is_keyed or not (payload is None or is_dict):
        raise LoadError(
            f"handler {name!r} has typed parameters, and with handler_mode: {mode} it gets an envelope, a dict; take one "
            "dict, or leave out handler_mode"
        )
