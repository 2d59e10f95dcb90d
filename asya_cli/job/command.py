"""`asya job`: lists, shows, follows and cancels the job runs of heavy actors, and drains actors."""

from __future__ import annotations

import typer

from asya_cli.job.control import cancel, drain, undrain
from asya_cli.job.listing import list_runs
from asya_cli.job.logs import logs
from asya_cli.job.show import show

app = typer.Typer(no_args_is_help=True, help="List, show and cancel the job runs of heavy actors; drain actors.")
app.command("list")(list_runs)
app.command()(show)
app.command()(logs)
app.command()(cancel)
app.command()(drain)
app.command()(undrain)
