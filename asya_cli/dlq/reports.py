"""`asya dlq reports`: sends dead letters of reports to their queues again (`protocol §4`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from asya_cli.options import JsonLines, MeshOptions, selects_mesh
from asya_cli.output.results import write

app = typer.Typer(no_args_is_help=True, help="Replay dead letters of reports, which are no envelopes.")


@dataclass(frozen=True)
class ReplayedReports:
    """What `--json` prints of a queue: how many dead letters it has got, or with `--dry-run` would get."""

    queue: str
    count: int


@app.callback()
def reports() -> None:
    """Replay dead letters of reports, which are no envelopes."""


@app.command()
@selects_mesh
def replay(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the dead letters, send nothing.")] = False,
    as_json: JsonLines = False,
    selected: MeshOptions,
) -> None:
    """Send the dead letters of x-reports and x-ends to these queues again.

    Repair the cause first. The gateway sends a dead letter; only then it is deleted. A report that is sent twice
    counts once.
    """
    from asya.protocol import names
    from asya_cli.dlq.report_letters import ReportLetters

    letters = ReportLetters(selected.client())
    for name in names.REPORT_QUEUES:
        count = letters.count(name) if dry_run else letters.replay(name)
        how = "would be sent again" if dry_run else "sent again"
        text = f"{name}: {count} {how}" if count else f"{name}: no dead letters"
        write(ReplayedReports(name, count), text, as_json=as_json)
