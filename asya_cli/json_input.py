"""Reads files and JSON that a user gives, with errors that say where a mistake is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec

from asya.protocol.text import as_utf8
from asya_cli.errors import CommandError, ExitCode


def read_bytes(name: str) -> bytes:
    """Read the text of a file, or of standard input for `-`, as UTF-8. It may be in UTF-16, as PowerShell writes it.

    Raises:
        CommandError: The file cannot be read.
    """
    if name == "-":
        return as_utf8(sys.stdin.buffer.read())
    try:
        return as_utf8(Path(name).read_bytes())
    except OSError as error:
        raise unreadable(name, error) from error


def unreadable(name: object, error: OSError) -> CommandError:
    """Return the error for a file that cannot be read."""
    code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.COMMAND_FAILED
    return CommandError(f"cannot read {name}: {error.strerror}", "Give the path of a file that exists, or - .", code)


def unwritable(name: object, error: OSError) -> CommandError:
    """Return the error for a file that cannot be written."""
    return CommandError(f"cannot write {name}: {error.strerror}", "Give a file in a folder that exists.")


def invalid_json(text: bytes, source: str, error: Exception, advice: str = "") -> CommandError:
    """Return the error for text that is not valid JSON, with the line and the column of the mistake.

    Args:
        text: The text.
        source: What errors call it; `-` is standard input.
        error: The error of the decoder that the command uses, for text that another one accepts.
        advice: What to type.
    """
    name = "standard input" if source == "-" else source
    try:
        json.loads(text)
    except json.JSONDecodeError as found:
        message = found.msg[:1].lower() + found.msg[1:]
        return CommandError(f"{name} is not valid JSON: {message} at line {found.lineno}, column {found.colno}", advice)
    except RecursionError:
        return CommandError(f"{name} is nested too deeply; no actor could read it", advice)
    except (UnicodeDecodeError, ValueError) as found:
        return CommandError(f"{name} is not valid JSON: {found}", advice)
    if isinstance(error, RecursionError):
        return CommandError(f"{name} is nested too deeply; no actor could read it", advice)
    form = "a JSON object" if isinstance(error, msgspec.ValidationError) else "valid JSON"
    return CommandError(f"{name} is not {form}: {error}", advice)


def raw_json(text: bytes, source: str, advice: str = "") -> msgspec.Raw:
    """Return text that is JSON, unchanged: its numbers keep their digits.

    Raises:
        CommandError: The text is not valid JSON, no actor could read it, or an object has a key twice.
    """
    name = "standard input" if source == "-" else source
    try:
        msgspec.json.decode(text)
        json.loads(text, object_pairs_hook=_without_duplicates, parse_int=str, parse_float=str)
    except msgspec.ValidationError as error:
        raise CommandError(f"{name} has a number that no actor could read: {error}", advice) from None
    except _DuplicateKeyError as error:
        raise CommandError(f"{name}: the key {json.dumps(error.key)} comes twice in an object", advice) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_json(text, source, error, advice) from error
    return msgspec.Raw(text.strip())


class _DuplicateKeyError(Exception):
    """An object of JSON has the same key twice. A reader would drop one of the two."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _without_duplicates(pairs: list[tuple[str, object]]) -> None:
    names: set[str] = set()
    for key, _ in pairs:
        if key in names:
            raise _DuplicateKeyError(key)
        names.add(key)
