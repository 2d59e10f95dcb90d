"""Detects a handler's changes to headers and status by comparing their JSON (`protocol §7`)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol import headers as header_names
from asya.protocol.frame import Frame
from asya.protocol.strict_json import NotJsonError, encode_value
from asya.runtime.abi import EnvelopeView
from asya.runtime.fan_out import FanOut


class Snapshot(msgspec.Struct, frozen=True):
    """The headers and the status at the start of a call, as JSON text."""

    headers: dict[str, Raw]
    status: dict[str, Raw]

    @classmethod
    def of(cls, view: EnvelopeView) -> "Snapshot":
        """The snapshot of a view."""
        return cls(encode_members(view.headers, "headers"), encode_members(view.status, "status"))


class GeneratorState(NamedTuple):
    """The envelope of a generator: a snapshot of its start, and the view that its commands change."""

    start: Snapshot
    view: EnvelopeView

    def frame(self, payload: Raw | None) -> Frame:
        """A frame with this payload and the changes since the start.

        Raises:
            NotJsonError: a header or a status key has a value that is not JSON.
        """
        return Frame(
            payload=payload,
            next=tuple(self.view.next) if self.view.next_changed else None,
            headers=changes(self.start.headers, encode_members(self.view.headers, "headers")),
            status=changes(self.start.status, encode_members(self.view.status, "status")),
        )


def slice_frames(output: FanOut, state: GeneratorState) -> Iterator[Frame]:
    """The frames of a fan-out, with the changes since the start.

    Raises:
        NotJsonError: an item is not JSON; the error names its index.
    """
    for part in output.slices(state.view):
        payload = None if part.number == 0 else _encode_item(part.number - 1, part.item)
        frame = state.frame(payload)
        header = encode_value(part.header)
        yield replace(frame, next=part.next, headers={**frame.headers, header_names.FAN_IN: header})


def encode_models(value: Any) -> Raw:
    """JSON text of a value that may hold models, dates, decimals and so on, each in the form of its own type.

    Raises:
        ContractError: a model is not valid.
        NotJsonError: the value has another type that JSON cannot hold.
    """
    try:
        return encode_value(value)
    except NotJsonError:
        from asya.contracts.codec import plain  # most results are plain already

        return encode_value(plain(value))


def _encode_item(index: int, item: Any) -> Raw:
    try:
        return encode_models(item)
    except NotJsonError as error:
        raise NotJsonError(f"items[{index}]: {error}") from None


def encode_members(values: dict[str, Any], field: str) -> dict[str, Raw]:
    """JSON text of each value in a field of the envelope.

    Raises:
        NotJsonError: a key or a value is not JSON; the error names it.
    """
    members: dict[str, Raw] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise NotJsonError(f".{field}: the key {name!r} is of type {type(name).__name__}; JSON keys are strings")
        try:
            members[name] = encode_value(value)
        except NotJsonError as error:
            raise NotJsonError(f".{field}[{name!r}]: {error}") from None
    return members


def changes(before: dict[str, Raw], after: dict[str, Raw]) -> dict[str, Raw | None]:
    """The members with new values, and None for each removed member."""
    changed: dict[str, Raw | None] = {
        name: raw for name, raw in after.items() if name not in before or bytes(before[name]) != bytes(raw)
    }
    return changed | {name: None for name in before if name not in after}
