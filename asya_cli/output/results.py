"""Prints the results of commands: as JSON with `--json`, else as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from asya_cli.output.text import echo, write_json_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.table import Table

    from asya_cli.output.console import Console

T = TypeVar("T")


def write(value: object, text: str, *, as_json: bool) -> None:
    """Print a value as a line of JSON, or as this text."""
    if as_json:
        write_json_line(value)
    else:
        echo(text)


def write_view(view: T, show: Callable[[Console, T], None], *, as_json: bool) -> None:
    """Print a view as a line of JSON, or let `show` print it at the width of tables."""
    from asya_cli.output.console import table_console

    if as_json:
        write_json_line(view)
    else:
        show(table_console(), view)


def write_list(values: Sequence[T], table_of: Callable[[Sequence[T]], Table], *, empty: str, as_json: bool) -> None:
    """Print values as lines of JSON, or as a table.

    Args:
        values: The values.
        table_of: Makes the table of one or more values.
        empty: The text for no values, which goes to standard error.
        as_json: Print JSON; no values are no lines.
    """
    from asya_cli.output.console import table_console

    if as_json:
        for value in values:
            write_json_line(value)
    elif values:
        table_console().print(table_of(values))
    else:
        echo(empty, err=True)
