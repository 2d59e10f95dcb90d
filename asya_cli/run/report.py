"""Prints what a call gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from rich.text import Text

from asya.sidecar import retry_policy
from asya_cli import clock
from asya_cli.output.text import one_line, visible

if TYPE_CHECKING:
    from asya.protocol.errors import ErrorInfo
    from asya.protocol.mesh_table import Actor
    from asya_cli.output.console import Console
    from asya_local.single_calls.calls import CallReport, GivenCommand, GivenFrame


def show_report(console: Console, name: str, actor: Actor, report: CallReport) -> None:
    """Print the commands, the frames and the error of a call."""
    for command in report.commands:
        console.print(_command(command), soft_wrap=True)
    for partial in report.partials:
        console.print(Text.assemble(("partial  ", "cyan"), _json(partial)), soft_wrap=True)
    for index, frame in enumerate(report.frames):
        _show_frame(console, index, frame)
    took = f"{report.milliseconds:,.0f} ms"
    if report.error is None:
        count = "1 frame" if len(report.frames) == 1 else f"{len(report.frames)} frames"
        ends = "" if report.frames else "; the route ends here"
        console.print(
            Text.assemble((one_line(name), "bold"), "  ", ("done", "green"), f"  {count}, {took}{ends}"), soft_wrap=True
        )
        return
    console.print(Text.assemble((one_line(name), "bold"), "  ", ("failed", "red"), f"  {took}"))
    _show_error(console, actor, report.error, timed_out=report.timed_out)


def _show_frame(console: Console, index: int, frame: GivenFrame) -> None:
    payload = bytes(frame.payload).decode() if isinstance(frame.payload, msgspec.Raw) else "the received payload"
    console.print(Text.assemble((f"frame {index}  ", "cyan"), payload), soft_wrap=True)
    if frame.next is not None:
        console.print(Text.assemble(("         next ", "dim"), " → ".join(frame.next) or "none"), soft_wrap=True)
    for kind, changes in (("header", frame.headers), ("status", frame.status)):
        for key, value in changes.items():
            text = bytes(value).decode()
            what = f"{one_line(key)} deleted" if text == "null" else f"{one_line(key)} = {text}"
            console.print(Text.assemble((f"         {kind} ", "dim"), what), soft_wrap=True)


def _show_error(console: Console, actor: Actor, error: ErrorInfo, *, timed_out: bool) -> None:
    console.print(Text(f"{one_line(error.type)}: {one_line(error.message)}"), soft_wrap=True)
    if error.traceback:
        console.print(Text(visible(error.traceback.rstrip()), style="dim"), soft_wrap=True)
    now = clock.now()
    decision = retry_policy.decide(
        actor.resiliency, error, attempt=1, first_attempt=now, now=now, jitter=0.5, time_limit=timed_out
    )
    match decision:
        case retry_policy.Retry(delay=delay, max_attempts=attempts):
            text = f"a mesh would try again after {delay.total_seconds():g} s, {attempts} attempts in all"
        case retry_policy.Exhausted(then_route=route) if route:
            text = f"a mesh would send it on to {' → '.join(route)}"
        case _:
            text = "a mesh would not try again: no policy has more attempts for this error"
    console.print(Text(text), soft_wrap=True)


def _command(command: GivenCommand) -> Text:
    words = _json(list(command.command))
    if command.error is not None:
        return Text.assemble(("command  ", "cyan"), words, ("  ✗ ", "red"), one_line(command.error))
    answer = "" if command.answer is None else f"  → {_json(command.answer)}"
    return Text.assemble(("command  ", "cyan"), words, answer)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
