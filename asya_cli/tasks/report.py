"""Prints a task with its stored envelope, and its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from rich.text import Text

from asya.protocol import states
from asya_cli.output.text import one_line, visible, without_fraction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asya.capabilities.fan_in.set_view import SetView
    from asya.capabilities.operations.mesh_numbers import ActorNumbers
    from asya.client.mesh_client import StoredObject
    from asya.protocol.envelope import Envelope, Route
    from asya.protocol.errors import ErrorInfo
    from asya.protocol.pause import PauseField, ShownValue, TaskPause
    from asya.protocol.task import Cancellation, EarlierGeneration, Resolution, StartedBy
    from asya.tasks.listing import TimelineEntry
    from asya.tasks.view import RetryView, TaskView
    from asya_cli.output.console import Console

KINDS = {
    "string": "text",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}
_MOST_SLICES = 20
COLORS = {states.SUCCEEDED: "green", states.FAILED: "red", states.CANCELED: "yellow", states.PAUSED: "yellow"}


def show_task_report(
    console: Console, task: TaskView | None, stored: StoredObject | None, envelope: Envelope | None
) -> None:
    """Print the record, completed from the stored envelope."""
    console.print(headline(task, envelope), soft_wrap=True)
    for name, value in facts_of(task, stored, envelope):
        console.print(Text.assemble((f"  {one_line(name):<11} ", "dim"), value), soft_wrap=True)
    error = error_of(task, envelope)
    if error is not None and error.traceback:
        trace = error.traceback.rstrip().removesuffix(f"{error.type}: {error.message}").rstrip()  # it is above
        console.print(Text(trace, style="dim"), soft_wrap=True)


def show_resume(console: Console, command: str) -> None:
    """Print the command that answers a pause."""
    console.print(Text.assemble(("  answer with ", "dim"), (one_line(command), "bold")), soft_wrap=True)


def show_restart(console: Console, command: str | None) -> None:
    """Print what starts a canceled task again: a command, or None if no input of it is kept."""
    text = "no input of it is kept: call its tool again, or send it again" if command is None else one_line(command)
    style = "bold" if command is not None else ""
    console.print(Text.assemble((f"  {'start again':<12}", "dim"), (text, style)), soft_wrap=True)


def show_set(console: Console, waits_for: SetView) -> None:
    """Print how many slices a set waits for, and a line for each of the first ones."""
    count = f"waits for {len(waits_for.missing):,} of {waits_for.slice_count:,}, until {waits_for.due_at}"
    console.print(Text.assemble((f"  {'slices':<12}", "dim"), count), soft_wrap=True)
    for each in waits_for.missing[:_MOST_SLICES]:
        name = one_line(each.id) if each.id is not None else ""
        end = "  ended without a result" if each.is_lost else ""
        console.print(Text.assemble((f"{'':<14}{each.slice_index:<6}", "dim"), name, (end, "red")), soft_wrap=True)
    more = len(waits_for.missing) - _MOST_SLICES
    if more > 0:
        console.print(Text(f"{'':<14}… and {more:,} more", style="dim"), soft_wrap=True)


def show_unread(console: Console, actors: Sequence[ActorNumbers]) -> None:
    """Print the queues on which a task may wait and which no function reads, each with what starts it again."""
    for actor in actors:
        if actor.not_read is not None:
            text = f"{one_line(actor.name)}: {one_line(actor.not_read.reason)}"
            console.print(Text.assemble((f"  {'not read':<12}", "dim"), (text, "red")), soft_wrap=True)
            console.print(Text(f"{'':<14}{one_line(actor.not_read.repair)}"), soft_wrap=True)


def show_timeline(console: Console, hops: Sequence[TimelineEntry]) -> None:
    """Print one line for each hop, with its times. Generations after the first prefix the position."""
    for hop in hops:
        generation = f"{hop.generation}." if hop.generation else ""
        again = f" (attempt {hop.attempt})" if hop.attempt > 1 else ""
        began = hop.received_at or hop.processing_at or hop.completed_at or ""
        took = f"{hop.duration_ms:,.0f} ms" if hop.duration_ms is not None else ""
        end = took if hop.completed_at else "not completed"
        line = Text.assemble(
            (f"  {generation}{hop.position:<4}", "dim"),
            f"{one_line(began[:23]):<25}{one_line(hop.actor)}{again}  ",
            (end, "dim"),
        )
        console.print(line, soft_wrap=True)


def headline(task: TaskView | None, envelope: Envelope | None) -> Text:
    """Return the id and the status."""
    status = envelope.status if envelope else None
    state = task.status if task else (status.phase if status and status.phase else "no record")
    reason = (task.reason if task else None) or (status.reason if status else None)
    name = task.id if task else (envelope.id if envelope else "")
    text = Text.assemble((one_line(name), "bold"), "  ", (state, COLORS.get(state, "cyan")))
    if reason and reason != "Completed":
        text.append(f" ({one_line(reason)})")
    if task and state not in COLORS:
        text.append(f"  {task.progress_percent} %")
    return text


def started_by(origin: StartedBy) -> str:
    """Return what started a task: `trigger nightly, slot 2026-11-25T01:00:00Z`, `trigger b, after the trigger a`."""
    slot = f", slot {without_fraction(origin.slot)}" if origin.slot else ""
    led = f", after the trigger{'s' if len(origin.after) > 1 else ''} {', '.join(origin.after)}" if origin.after else ""
    return f"{origin.kind} {origin.name}{slot}{led}" if origin.name else origin.kind


def facts_of(task: TaskView | None, stored: StoredObject | None, envelope: Envelope | None) -> list[tuple[str, Text]]:
    """Return the name and the value of each known fact, in the order of the report."""
    status = envelope.status if envelope else None
    # A paused or canceled task is where its record says: its envelope has gone on to x-resume or x-sink.
    is_held = task is not None and task.status in (states.PAUSED, states.CANCELED) and task.route is not None
    route = envelope.route if envelope and not is_held else (task.route if task else None)
    ended_well = (task.status if task else (status.phase if status else None)) == states.SUCCEEDED
    error = error_of(task, envelope)
    lines: list[tuple[str, Text | str | int | None]] = [
        ("route", route_line(route, ended_well=ended_well) if route else None),
        *(_pause_facts(task.pause) if task and task.pause else ()),
        ("waits until", task.waiting_until if task else None),
        ("attempt", attempts(task, envelope)),
        ("retry", retry_line(task.retry) if task and task.retry else None),
        ("canceled", cancellation_line(task.canceled) if task and task.canceled else None),
        ("error", f"{error.type}: {error.message}" if error else None),
        ("resolution", resolution_line(task.resolution) if task and task.resolution else None),
        ("problem", f"{task.problem.type}: {task.problem.message}" if task and task.problem else None),
        ("created", (task.created_at if task else None) or (status.created_at if status else None)),
        ("updated", (task.updated_at if task else None) or (status.updated_at if status else None)),
        ("deadline", deadline_line(task) or (status.deadline_at if status else None)),
        ("parent", (task.parent_id if task else None) or (envelope.parent_id if envelope else None)),
        ("generation", (task.generation if task else 0) or None),
        *(("before", earlier_line(each)) for each in (task.earlier if task else ())),
        ("tool", task.tool if task else None),
        ("started by", started_by(task.started_by) if task and task.started_by else None),
        ("owner", task.owner if task else None),
        ("stored as", stored.uri if stored else None),
    ]
    if task is None:
        lines.append(("record", "none: reporting was off for this envelope, or the record has expired"))
    return [
        (name, value if isinstance(value, Text) else _indented(str(value)))
        for name, value in lines
        if value is not None
    ]


def deadline_line(task: TaskView | None) -> str | None:
    """Return the deadline of a task; that of a paused one stands still."""
    if task is None or task.deadline_at is None:
        return None
    if task.pause is None:
        return task.deadline_at
    return f"stands still while the task is paused; it was {task.deadline_at}, and moves on by the time of the pause"


def cancellation_line(canceled: Cancellation) -> str:
    """Return who canceled a task and when, such as `by AIDAEXAMPLE at 2026-…`."""
    who = f"by {canceled.by}" if canceled.by is not None else f"with its root {canceled.root}"
    return f"{who} at {canceled.at}"


def resolution_line(resolution: Resolution) -> str:
    """Return what became of a failure, such as `replayed by AIDAEXAMPLE at 2026-… as 1f6a0a54-…, which succeeded`."""
    by = f" by {resolution.by}" if resolution.by is not None and resolution.how != "overtaken" else ""
    at = f" at {resolution.at}" if resolution.at is not None else ""
    if resolution.how in ("dismissed", "redriven"):
        return f"{resolution.how}{by}{at}" + (f": {resolution.reason}" if resolution.reason else "")
    if resolution.how == "overtaken":
        return f"overtaken by {resolution.task}: {resolution.status}"
    again = "; the failure is open again" if resolution.is_open else ""
    return f"replayed{by}{at} as {resolution.task}: {resolution.status}{again}"


def _indented(value: str) -> Text:
    """A value below which nothing looks like another fact."""
    return Text(visible(value).replace("\n", f"\n{'':<14}"))


def _pause_facts(pause: TaskPause) -> list[tuple[str, Text | str]]:
    return [*pause_lines(pause)[:1], *shown_facts(pause), *pause_lines(pause)[1:]]


def shown_facts(pause: TaskPause) -> list[tuple[str, Text | str]]:
    """Return what a pause shows of the payload: the pointer and the text of each value."""
    return [(each.name, _shown_text(each)) for each in pause.shown or ()]


def _shown_text(value: ShownValue) -> Text:
    if value.text is None:
        return Text("missing", style="dim")
    # A value of several lines begins below its name, so that its indentation stays true.
    text = f"\n{value.text}" if "\n" in value.text else value.text
    return Text.assemble(_indented(text), ("  (shortened)" if value.cut else "", "dim"))


def pause_lines(pause: TaskPause) -> list[tuple[str, str]]:
    """Return the prompt of a pause, its start, and a line for each field."""
    return [
        ("waiting for", pause.prompt),
        ("since", pause.since),
        *([("link", pause.callback)] if isinstance(pause.callback, str) else []),
        *((field.name, field_line(field)) for field in pause.fields),
    ]


def field_line(field: PauseField) -> str:
    """Describe a field, such as `one of "web", "mail": Where to? (default "web")`."""
    if field.options is not None:
        kind = "one of " + ", ".join(map(_json, field.options))
        kind = f"a list of {kind}" if field.type == "array" else kind
    else:
        kind = KINDS[field.type]
    prompt = f": {field.prompt}" if field.prompt else ""
    if field.default is not None:
        return f"{kind}{prompt} (default {_json(field.default)})"
    return f"{kind}{prompt}" if field.required else f"{kind}{prompt} (optional)"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def earlier_line(earlier: EarlierGeneration) -> str:
    """Describe an earlier generation, such as `generation 0: failed (DeliveryExhausted) at score, 2026-…`."""
    reason = f" ({earlier.reason})" if earlier.reason and earlier.reason != "Completed" else ""
    actor = f" at {earlier.actor}" if earlier.actor else ""
    ended = f", {earlier.ended_at}" if earlier.ended_at else ""
    then = f"; {resolution_line(earlier.resolution)}" if earlier.resolution is not None else ""
    return f"generation {earlier.generation}: {earlier.status}{reason}{actor}{ended}{then}"


def attempts(task: TaskView | None, envelope: Envelope | None) -> str | None:
    """Return the attempt, such as `2 of 3`; without the maximum if it is unknown, None if both are."""
    status = envelope.status if envelope else None
    if status and status.attempt and status.max_attempts:
        return f"{status.attempt} of {status.max_attempts}"
    if task and task.attempt and task.retry:
        return f"{task.attempt} of {task.retry.max_attempts}"
    return str(task.attempt) if task and task.attempt else None


def retry_line(retry: RetryView) -> str:
    """Return the last failed attempt and the next one: `attempt 2 of 5 failed: KeyError: 'price'; the next is due at …`."""
    following = "the next is at work" if retry.next_at is None else f"the next is due at {retry.next_at}"
    first = retry.error.message.partition("\n")[0]
    return f"attempt {retry.attempt} of {retry.max_attempts} failed: {retry.error.type}: {first}; {following}"


def error_of(task: TaskView | None, envelope: Envelope | None) -> ErrorInfo | None:
    """Return the error, from the stored envelope if possible, because only that has the traceback."""
    stored = envelope.status.error if envelope and envelope.status else None
    return stored or (task.error if task else None)


def route_line(route: Route, *, ended_well: bool) -> Text:
    """Return the route with the done, current and next actors, such as `inspect ✓ → clean ● → report`."""
    line = Text()
    done = [*route.prev, route.curr] if ended_well and route.curr else [*route.prev]
    for actor in done:
        line.append(" → " if line else "").append(f"{one_line(actor)} ✓", "green")
    if not ended_well and route.curr:
        line.append(" → " if line else "").append(f"{one_line(route.curr)} ●", "bold yellow")
    for actor in route.next:
        line.append(" → " if line else "").append(one_line(actor), "dim")
    return line
