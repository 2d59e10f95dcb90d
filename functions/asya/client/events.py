"""The events of a task, and their form as text: Server-Sent Events (`protocol §13`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Event:
    """One event of a task.

    Attributes:
        name: `status`, `partial` or `final`.
        cursor: what names the events up to this one.
        data: what happened; of `final` the record of the task.
    """

    name: str
    cursor: str
    data: Any

    @property
    def is_last(self) -> bool:
        """Whether the task has ended with it."""
        return self.name == "final"


def parse_events(text: bytes) -> Iterator[Event]:
    """Read the events of one answer. Comments, such as a keep-alive, are none."""
    for block in text.decode("utf-8").split("\n\n"):
        fields: dict[str, list[str]] = {}
        for line in block.split("\n"):  # `splitlines` would also split at U+2028, which JSON leaves in its strings
            name, colon, value = line.partition(":")
            if name and colon:
                fields.setdefault(name, []).append(value.removeprefix(" "))
        if "event" in fields and "data" in fields:
            data = msgspec.json.decode("\n".join(fields["data"]))
            yield Event(fields["event"][-1], fields.get("id", [""])[-1], data)
