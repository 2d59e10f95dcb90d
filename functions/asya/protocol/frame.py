"""Frames: the outputs of a handler (`protocol §6`, `§7`)."""

import msgspec
from msgspec import Raw

from asya.protocol import headers as header_names


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One output of a handler, as JSON text.

    Attributes:
        payload: the value that the handler returned or yielded; None stands for the received payload (a fan-out's origin).
        next: `route.next` as the handler left it for this frame; None if the handler did not change it.
        headers: headers that the handler set (JSON text) or deleted (None).
        status: status keys that the handler set (JSON text) or deleted (None).
        alone: whether this is certainly the only frame of its hop.
    """

    payload: Raw | None
    next: tuple[str, ...] | None = None
    headers: dict[str, Raw | None] = {}
    status: dict[str, Raw | None] = {}
    alone: bool = False

    @property
    def opens_set(self) -> bool:
        """Whether the frame is a slice of a set that its handler opened (`protocol §9`)."""
        return self.headers.get(header_names.FAN_IN) is not None
