"""The text that `--help` shows of a command."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def wrap_at_the_terminal(app: typer.Typer) -> None:
    """Let the terminal break the lines in the help of all commands of an app and of its groups.

    Typer keeps the line breaks of a docstring in all paragraphs but the first.
    """
    for command in app.registered_commands:
        command.help = one_line_each(command.help or inspect.getdoc(command.callback) or "")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            wrap_at_the_terminal(group.typer_instance)


def one_line_each(text: str) -> str:
    """Return the paragraphs of a text, each as one line."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
