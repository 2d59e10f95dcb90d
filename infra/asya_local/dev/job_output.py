"""Shows what jobs print: the standard output of each run in the EMR Serverless stand-in, as it comes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

_POLL_SECONDS = 0.3
_QUIET_LOOKS = 3
_LONGEST = 64 * 1024
"""Bytes that one look takes of a run; the rest comes with the next ones."""


@dataclass
class JobOutput:
    """The output of the runs in a folder.

    Attributes:
        folder: The folder with one folder for each run.
        tell: Takes the level and the text of what the author should know.
    """

    folder: Path
    tell: Callable[[str, str], None]
    _read: dict[Path, int] = field(default_factory=dict)
    _quiet: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Leave out what earlier runs have printed."""
        for path in self._files():
            self._read[path] = path.stat().st_size

    def follow(self, ended: threading.Event) -> None:
        """Show new lines until the mesh ends."""
        while not ended.wait(_POLL_SECONDS):
            self.show()

    def show(self) -> None:
        """Show the lines that have come since the last look, and a line without an end that has not grown for a while."""
        for path in self._files():
            start = self._read.get(path, 0)
            try:
                with path.open("rb") as file:
                    file.seek(start)
                    new = file.read(_LONGEST)
            except FileNotFoundError:
                continue  # removed meanwhile
            end = new.rfind(b"\n") + 1
            if not end and new and (len(new) == _LONGEST or self._is_quiet(path, len(new))):
                end = len(new)
            if end:
                self._read[path] = start + end
                self._quiet.pop(path, None)
                self.tell("job", new[:end].decode(errors="replace").rstrip("\n"))

    def _is_quiet(self, path: Path, length: int) -> bool:
        """Return whether the beginning of a line has been the same for some looks."""
        before, looks = self._quiet.get(path, (0, 0))
        self._quiet[path] = (length, looks + 1 if before == length else 1)
        return self._quiet[path][1] > _QUIET_LOOKS

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*/stdout"))
