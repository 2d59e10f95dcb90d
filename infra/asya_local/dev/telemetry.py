"""The telemetry of functions in a mesh of `asya dev`: warnings and errors for the author, and no metrics.

The worker of handlers runs this module by its path, so it imports the standard library and `asya` alone.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from asya.protocol.text import one_line


class Log:
    """The log of one function.

    Args:
        actor: The name of the actor or system function.
        write: Takes the level and the text of each entry.
    """

    def __init__(self, actor: str, write: Callable[[str, str], None]) -> None:
        self._actor = actor
        self._write = write

    def info(self, message: str, **fields: Any) -> None:
        """Write an entry that needs no attention."""
        self._entry("info", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """Write an entry that may need attention."""
        self._entry("warning", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        """Write an entry that needs attention."""
        self._entry("error", message, fields)

    def exception(self, message: str, **fields: Any) -> None:
        """Write an entry about the exception that is being handled."""
        self._entry("error", message, {"exc_info": True, **fields})

    def _entry(self, level: str, message: str, fields: dict[str, Any]) -> None:
        problem = fields.pop("exc_info", None)
        named = " ".join(f"{name}={value}" for name, value in fields.items())
        text = one_line(f"{self._actor}: {message}" + (f" ({named})" if named else ""))
        if isinstance(problem, BaseException):
            text += "\n" + "".join(traceback.format_exception(problem)).rstrip()
        elif problem:
            text += "\n" + traceback.format_exc().rstrip()
        self._write(level, text)


class DevTelemetry:
    """Stands for `asya.function.aws.telemetry.Telemetry`; it has no metrics and no spans."""

    traces = None

    def __init__(self, actor: str, write: Callable[[str, str], None]) -> None:
        self.log = Log(actor, write)

    def count(self, *_arguments: Any, **_fields: Any) -> None:
        """Count nothing."""

    def measure(self, *_arguments: Any, **_fields: Any) -> None:
        """Measure nothing."""

    def flush(self) -> None:
        """Flush nothing."""
