"""Prints triggers at 80 columns, and slots in the zone of their schedule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rich.table import Table
from rich.text import Text

from asya.protocol import states
from asya.protocol.times import parse_time
from asya_cli import clock
from asya_cli.output.text import one_line
from asya_cli.tasks.listing import table_of
from asya_cli.tasks.report import COLORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asya.capabilities.triggers.operators.answers import SlotView, TriggerView
    from asya_cli.output.console import Console


def local_time(at: str, timezone: str | None) -> str:
    """Return a time in a zone, with its offset: `2026-11-25 02:00 +01`.

    Args:
        at: The time (RFC 3339).
        timezone: The zone of the schedule; None for UTC.
    """
    local = parse_time(at).astimezone(ZoneInfo(timezone or "UTC"))
    offset = local.strftime("%z")
    return f"{local:%Y-%m-%d %H:%M} {offset[:3]}{offset[3:] if offset[3:] != '00' else ''}"


_NOT_STARTED = "not started"


def trigger_table(views: Sequence[TriggerView]) -> Table:
    """Return a table with one line for each trigger."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    for name in ("trigger", "source", "is", "last slot", "task", "next slot"):
        table.add_column(name, no_wrap=name != "trigger", overflow="fold")
    for view in views:
        last = local_time(view.last.at, view.timezone) if view.last is not None else ""
        following = local_time(view.next[0], view.timezone) if view.next else ""
        status = _status(view.last) if view.last is not None else Text("")
        table.add_row(Text(one_line(view.name)), view.kind, _state(view), last, status, following)
    return table


def show_trigger(console: Console, view: TriggerView) -> None:
    """Print a trigger, its slots and its newest tasks."""
    console.print(Text.assemble((one_line(view.name), "bold"), "  ", _state(view)), soft_wrap=True)
    for name, value in _facts(view):
        console.print(Text.assemble((f"  {name:<10}", "dim"), value), soft_wrap=True)
    if view.tasks:
        console.print()
        console.print(table_of(view.tasks, clock.now(), console.width))


def _facts(view: TriggerView) -> list[tuple[str, Text]]:
    starts = f"tool {view.tool}" if view.tool is not None else " → ".join(view.route)
    facts = [("source", Text(one_line(_source(view)))), ("starts", Text(one_line(starts)))]
    if view.overlap != "allow":
        facts.append(("overlap", Text(view.overlap)))
    if view.last is not None:
        at = local_time(view.last.at, view.timezone)
        facts.append(("last", Text.assemble(at, "  ", _status(view.last), "  ", view.last.id)))
    facts += [
        ("next" if not number else "", Text(local_time(at, view.timezone))) for number, at in enumerate(view.next)
    ]
    if view.url is not None:
        facts.append(("url", Text(one_line(view.url))))
    return [*facts, *_waiting(view)]


def _source(view: TriggerView) -> str:
    if view.cron is not None:
        return f"{view.cron} in {view.timezone}"
    if view.objects is not None:
        return f"s3 {view.objects.bucket}: {view.objects.prefix}*{view.objects.suffix}"
    if view.event is not None:
        return f"event {json.dumps(view.event.pattern)} on the bus {view.event.bus}"
    return view.kind


def _waiting(view: TriggerView) -> list[tuple[str, Text]]:
    facts, lane = [], view.lane
    if lane is not None and lane.running is not None:
        facts.append(("running", Text(lane.running)))
    if lane is not None and lane.queued:
        facts.append(("queued", Text("1 start" if lane.queued == 1 else f"{lane.queued} starts")))
    if lane is not None and lane.closes is not None:
        occurrences = "1 occurrence" if lane.gathered == 1 else f"{lane.gathered} occurrences"
        facts.append(("window", Text(f"{occurrences}, closes {local_time(lane.closes, view.timezone)}")))
    return facts


def _state(view: TriggerView) -> Text:
    if not view.enabled:
        return Text("off", style="yellow")
    return Text(states.PAUSED, style="yellow") if view.paused else Text("on", style="green")


def _status(slot: SlotView) -> Text:
    if slot.status is None:
        return Text(_NOT_STARTED, style="dim")
    return Text(slot.status, style=COLORS.get(slot.status, "cyan"))
