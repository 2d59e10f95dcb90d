"""The person whom the demo waits for: asked at the terminal, or answered for where there is none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from asya.protocol import names

if TYPE_CHECKING:
    from rich.console import Console

    from asya.protocol.envelope import Envelope
    from asya.protocol.pause import TaskPause

APPROVAL = "approve-report"


def with_approval(envelope: Envelope) -> Envelope:
    """The envelope with a pause for a person in its route: after the airports are merged, before the report is written."""
    place = envelope.route.next.index(names.FAN_IN) + 1
    ahead = envelope.route.next
    route = replace(envelope.route, next=(*ahead[:place], APPROVAL, *ahead[place:]))
    return replace(envelope, route=route)


def passed(route: tuple[str, ...]) -> tuple[str, ...]:
    """The actors that an envelope of this route passes: whoever waited for a person goes on through x-resume."""
    return tuple(name for actor in route for name in ((actor, names.RESUME) if actor == APPROVAL else (actor,)))


def answers(pause: TaskPause, console: Console) -> bytes:
    """What the task asks for, as JSON: from whoever sits at the terminal, else what the mesh file has for want of an answer."""
    console.print(f"  [yellow]‖[/] {pause.prompt}")
    given: dict[str, object] = {}
    for field in pause.fields:
        question = f"    {field.prompt or field.name} [dim]({field.default})[/]"
        if not (console.is_terminal and sys.stdin.isatty()):
            console.print(f"{question}: [dim]nobody here to ask[/]")
        elif answer := console.input(f"{question}: ").strip():
            given[field.name] = answer
    console.print()
    return msgspec.json.encode(given)
