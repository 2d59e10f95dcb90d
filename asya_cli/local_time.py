"""`asya local time`: starts what schedules start later, now."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from asya_cli import clock
from asya_cli.errors import CommandError
from asya_cli.options import DEFAULT_STATE, JsonLines, MeshOptions
from asya_cli.output.results import write
from asya_cli.output.text import counted, echo, one_line, without_fraction

_SPAN = re.compile(r"\+?(\d{1,6})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def time(
    span: Annotated[
        str, typer.Argument(metavar="SPAN", help="How far from now: +90m, +12h or +1d.", show_default=False)
    ],
    state: Annotated[Path, typer.Option("--state", help="Folder for the files of this local cloud.")] = DEFAULT_STATE,
    *,
    as_json: JsonLines = False,
) -> None:
    """Start the tasks of all slots up to a later time, in their order, and print them. It moves no clock.

    A mesh of `asya dev` has this too. The slots count as decided: they do not start again at their time.
    """
    from asya.client.triggers import Triggers

    match = _SPAN.fullmatch(span.strip())
    if match is None:
        raise CommandError(f"{span!r} is no span of time", "Type +90m, +12h or +1d.")
    until = clock.now() + timedelta(**{_UNITS[match[2]]: int(match[1])})
    count = 0
    for slot in Triggers(MeshOptions(state).client()).decide(until):
        count += 1
        write(slot, f"{without_fraction(slot.at)}  {one_line(slot.trigger)}  {slot.id}", as_json=as_json)
    echo(counted(count, "slot"), err=True)
