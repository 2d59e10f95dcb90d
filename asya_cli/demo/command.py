"""The command line of `asya demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

STATE = Path(".asya/demo")


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the local cloud up, to look around in.")] = False,
    approve: Annotated[bool, typer.Option("--approve", help="Have the task wait for you before it publishes.")] = False,
    state: Annotated[Path, typer.Option("--state", help="Folder for the local cloud and the results.")] = STATE,
) -> None:
    """Run the flight-delay pipeline on a local cloud: SQS, Lambda, Spark, S3; nothing of AWS is touched.

    Leaves result.json and report.html in the state folder, and nothing running unless told to keep it.
    """
    from rich.console import Console

    from asya_cli.demo.run import Demo

    Demo(Console(highlight=False), state, keep=keep, approve=approve).run()
