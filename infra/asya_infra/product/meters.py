"""Tells how far a download is: a line with a bar and the bytes for each tenth."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOOK_SECONDS = 1.0


def to_stderr(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)


class Meter:
    """Tells how much of a part is written: a line with a bar for each tenth.

    Args:
        title: the part.
        megabytes: how much it will be.
        tell: takes a line.
    """

    def __init__(self, title: str, megabytes: int, tell: Callable[[str], None]) -> None:
        self._title = title
        self._megabytes = megabytes
        self._tell = tell
        self._tenths = 0

    def look(self, size: int) -> None:
        """Take the bytes that are there now."""
        written = round(size / 1e6)
        tenths = min(10, written * 10 // self._megabytes)
        if tenths > self._tenths:
            self._tenths = tenths
            bar = "█" * tenths + "░" * (10 - tenths)
            self._tell(f"{bar} {self._title}: {written:,} of about {self._megabytes:,} MB")


@contextmanager
def metered(folder: Path, meter: Meter) -> Iterator[None]:
    """Show a meter by how much a folder has grown, as long as the block runs."""
    before = folder_size(folder)
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            meter.look(folder_size(folder) - before)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
        meter.look(folder_size(folder) - before)
    finally:
        ended.set()
        watcher.join()


def folder_size(folder: Path) -> int:
    """Return the bytes of a folder, in which files come and go."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total
