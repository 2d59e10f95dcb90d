"""The command line of `asya demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

STATE = Path(".asya/demo")


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the local cloud running, to inspect it.")] = False,
    approve: Annotated[
        bool, typer.Option("--approve", help="Pause for your approval before the report is written.")
    ] = False,
    state: Annotated[Path, typer.Option("--state", help="Folder for the local cloud and the results.")] = STATE,
) -> None:
    """Run the flight-delay pipeline on a local cloud: SQS, Lambda, Spark, S3. No call reaches AWS.

    Writes result.json and report.html to the state folder, and stops the cloud unless --keep is given.
    """
    from asya_cli.demo.run import Demo
    from asya_cli.output.console import Console

    Demo(Console(highlight=False), state, keep=keep, approve=approve).run()
