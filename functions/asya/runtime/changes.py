"""What a handler changed of its envelope's headers and status, told by comparing them as JSON (`protocol §7`)."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol import headers as header_names
from asya.protocol.frame import Frame
from asya.protocol.strict_json import NotJsonError, encode_value
from asya.runtime.abi import EnvelopeView
from asya.runtime.fan_out import FanOut


class Snapshot(msgspec.Struct, frozen=True):
    """Headers and status as the call began."""

    headers: dict[str, Raw]
    status: dict[str, Raw]

    @classmethod
    def of(cls, view: EnvelopeView) -> "Snapshot":
        """What a view shows now."""
        return cls(encoded(view.headers, "headers"), encoded(view.status, "status"))

    def frame(self, payload: Raw | None, view: EnvelopeView) -> Frame:
        """A frame with this payload and what has changed in the view since.

        Raises:
            NotJsonError: if something was set to what JSON cannot hold.
        """
        return Frame(
            payload=payload,
            next=tuple(view.next) if view.next_touched else None,
            headers=changes(self.headers, encoded(view.headers, "headers")),
            status=changes(self.status, encoded(view.status, "status")),
        )


def slice_frames(given: FanOut, as_received: Snapshot, view: EnvelopeView) -> Iterator[Frame]:
    """The frames that a fan-out stands for, with what has changed in the view.

    Raises:
        NotJsonError: naming the item that JSON cannot hold.
    """
    for part in given.slices(view):
        payload = None if part.index == 0 else _item(part.index - 1, part.item)
        frame = as_received.frame(payload, view)
        header = encode_value(part.header)
        yield replace(frame, next=part.next, headers={**frame.headers, header_names.FAN_IN: header})


def _item(index: int, item: Any) -> Raw:
    try:
        return encode_value(item)
    except NotJsonError as error:
        raise NotJsonError(f"items[{index}]: {error}") from None


def encoded(values: dict[str, Any], where: str) -> dict[str, Raw]:
    """Each value as JSON text.

    Raises:
        NotJsonError: naming which of `where` it is.
    """
    found: dict[str, Raw] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise NotJsonError(f".{where}: the key {name!r} is of type {type(name).__name__}; JSON keys are strings")
        try:
            found[name] = encode_value(value)
        except NotJsonError as error:
            raise NotJsonError(f".{where}[{name!r}]: {error}") from None
    return found


def changes(before: dict[str, Raw], after: dict[str, Raw]) -> dict[str, Raw | None]:
    """What was set to another value, and, as None, what is gone."""
    changed: dict[str, Raw | None] = {
        name: raw for name, raw in after.items() if name not in before or bytes(before[name]) != bytes(raw)
    }
    return changed | {name: None for name in before if name not in after}
