"""Writes what the command prints, and the text that `--help` shows.

Standard output and standard error may be closed, full, or without Unicode.
"""

from __future__ import annotations

import errno
import inspect
import io
import json
import os
import sys

import typer

from asya.protocol.text import HIDDEN, one_line, visible

__all__ = ["one_line", "visible"]  # beside those of this module

_UNWRITABLE = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""The errors of a closed pipe and of a full disk."""


def open_streams() -> None:
    """Let each text be written: with escapes where the encoding lacks a character, and nowhere if a stream is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def end_output(error: OSError) -> str:
    """Write nothing more to standard output, which has failed, and return the problem.

    What it still holds is lost.

    Returns:
        The problem; empty if the reader of the output has closed it.

    Raises:
        OSError: The error is about something else.
    """
    if error.errno not in _UNWRITABLE or error.filename is not None:
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return "" if error.errno == errno.EPIPE else f"cannot write standard output: {os.strerror(error.errno)}"


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


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 run`, `2 runs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def without_fraction(at: str) -> str:
    """Return a time of the mesh to the second, in UTC: `2026-11-20T09:00:00Z`; an empty text as it is."""
    return at and f"{at[:19]}Z"


def echo(text: str, *, err: bool = False, color: str | None = None) -> None:
    """Write a text and a newline to standard output, or to standard error."""
    typer.echo(styled(visible(text), color), err=err)  # noqa: TID251 - the text is visible


def styled(text: str, color: str | None) -> str:
    """Return a text in a color, unless `NO_COLOR` is set. A color is left out where the output is no terminal."""
    return text if color is None or os.environ.get("NO_COLOR") else typer.style(text, fg=color)


def write_json(body: bytes) -> None:
    r"""Write JSON to standard output. Hidden characters that it has within strings become `\u009b`: the same JSON."""
    _write(_escape_json(body))


def write_json_line(value: object) -> None:
    """Write a dataclass or another value as one line of JSON."""
    import msgspec

    write_json(msgspec.json.encode(value) + b"\n")


def write_json_document(value: object) -> None:
    """Write a dataclass or another value as indented JSON."""
    import msgspec

    write_json(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def write_exact(body: bytes) -> None:
    """Write bytes to standard output, unchanged unless it is a terminal, which gets a newline at their end."""
    _write(_escape_json(body).removesuffix(b"\n") + b"\n" if sys.stdout.isatty() else body)


def _write(body: bytes) -> None:
    sys.stdout.buffer.write(body)


def _escape_json(body: bytes) -> bytes:
    text = body.decode("utf-8", "backslashreplace")
    return HIDDEN.sub(lambda match: json.dumps(match[0])[1:-1], text).encode("utf-8")
