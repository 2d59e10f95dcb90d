"""The demo's approval: prompts at the terminal, or takes the defaults without one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace
from rich.markup import escape

from asya.protocol import names

if TYPE_CHECKING:
    from asya.protocol.envelope import Envelope
    from asya.protocol.pause import TaskPause
    from asya_cli.output.console import Console

APPROVAL = "approve-report"


def with_approval(envelope: Envelope) -> Envelope:
    """Return the envelope with a pause in its route, between the fan-in and the report."""
    actors = envelope.route.next
    position = actors.index(names.FAN_IN) + 1
    route = replace(envelope.route, next=(*actors[:position], APPROVAL, *actors[position:]))
    return replace(envelope, route=route)


def full_route(route: tuple[str, ...]) -> tuple[str, ...]:
    """Return the route with x-resume after the pause, as the envelope passes it."""
    return tuple(name for actor in route for name in ((actor, names.RESUME) if actor == APPROVAL else (actor,)))


def answers(pause: TaskPause, console: Console) -> bytes:
    """Return the answers to a pause as JSON, from the terminal. Without a terminal the mesh file's defaults apply."""
    console.print(f"  [yellow]‖[/] {escape(pause.prompt)}")
    replies: dict[str, object] = {}
    for field in pause.fields:
        question = f"    {escape(field.prompt or field.name)} [dim]({escape(str(field.default))})[/]"
        if not (console.is_terminal and sys.stdin.isatty()):
            console.print(f"{question}: [dim]no terminal, so the default applies[/]")
        elif answer := console.input(f"{question}: ").strip():
            replies[field.name] = answer
    console.print()
    return msgspec.json.encode(replies)
