"""The lines of a command's help end where the terminal ends, and not where those of its docstring do."""

import typer
from typer.testing import CliRunner

from asya_cli.output.text import wrap_at_the_terminal


def test_each_paragraph_fills_the_terminal() -> None:
    group = typer.Typer()

    @group.command()
    def fire() -> None:
        """Start a task.

        Without an option the payload has
        the values of now.

        A paused trigger
        may be fired.
        """

    app = typer.Typer()
    app.add_typer(group, name="trigger")
    wrap_at_the_terminal(app)
    shown = CliRunner().invoke(app, ["trigger", "fire", "--help"]).stdout
    lines = [line.strip() for line in shown.splitlines()]
    assert lines[3:8] == [
        "Start a task.",
        "",
        "Without an option the payload has the values of now.",
        "",
        "A paused trigger may be fired.",
    ]
