"""What user code gives back, one piece at a time (`protocol §6`, `§7`)."""

from dataclasses import dataclass, field

from msgspec import Raw


@dataclass(frozen=True, slots=True)
class Frame:
    """One output of a handler, already JSON.

    Attributes:
        payload: what it returned or yielded.
        next: `route.next` as the handler left it for this frame; None if it never touched it.
        headers: headers the handler set (JSON text) or deleted (None).
        status: keys of the status that the handler set or deleted.
    """

    payload: Raw
    next: tuple[str, ...] | None = None
    headers: dict[str, Raw | None] = field(default_factory=dict)
    status: dict[str, Raw | None] = field(default_factory=dict)
