"""What user code gives back, one piece at a time (`protocol §6`, `§7`)."""

import msgspec
from msgspec import Raw

from asya.protocol import headers as header_names


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One output of a handler, already JSON.

    Attributes:
        payload: what it returned or yielded; None for the payload as it was received (the origin of a fan-out).
        next: `route.next` as the handler left it for this frame; None if it never touched it.
        headers: headers the handler set (JSON text) or deleted (None).
        status: keys of the status that the handler set or deleted.
        alone: it is known that its hop gives no other frame.
    """

    payload: Raw | None
    next: tuple[str, ...] | None = None
    headers: dict[str, Raw | None] = {}
    status: dict[str, Raw | None] = {}
    alone: bool = False

    @property
    def opens_set(self) -> bool:
        """Whether it is a slice of a set that its handler opened (`protocol §9`)."""
        return self.headers.get(header_names.FAN_IN) is not None
