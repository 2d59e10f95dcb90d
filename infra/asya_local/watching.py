"""Waits for changes of a mesh: of its file, and of the folders with its code."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

from watchfiles import Change, DefaultFilter, watch

from asya_infra.build.code_files import code_files
from asya_infra.build.packages import REQUIREMENTS, package_inputs
from asya_infra.build.requirements import read_requirements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from watchfiles.main import FileChange

# Milliseconds: editors write a file in several steps, and a change of branch writes many files.
_DEBOUNCE = 200


def identities(folders: Sequence[Path]) -> tuple[tuple[Path, int, int] | None, ...]:
    """Return what tells a folder from another one that is made at its path: a watch belongs to the folder."""
    found: list[tuple[Path, int, int] | None] = []
    for folder in folders:
        try:
            status = folder.stat()
        except OSError:
            found.append(None)
        else:
            found.append((folder, status.st_dev, status.st_ino))
    return tuple(found)


def linked_folders(folder: Path) -> set[Path]:
    """Return the folders outside of a folder of code that its build reads: by links, and for the packages that it requires."""
    own = folder.resolve()
    files = [file.source for file in code_files(folder).files]
    files += [part for part in package_inputs(folder) if isinstance(part, Path)]
    parents = {file.resolve().parent for file in files}
    parents |= {each.resolve() for each in read_requirements(folder / REQUIREMENTS).wheel_folders}
    return {parent for parent in parents if parent != own and own not in parent.parents and parent.is_dir()}


def with_linked_folders(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the folders of code with those that their builds read beside them: all that is watched beside the mesh file."""
    return (*folders, *sorted({parent for folder in folders for parent in linked_folders(folder)}))


class Wait(Protocol):
    """Waits for a change."""

    def __call__(self, seconds: float | None = None) -> bool:
        """Wait, at most so many seconds; returns whether something has changed."""


@contextmanager
def watching(mesh: Path, folders: Sequence[Path]) -> Iterator[Wait]:
    """Watch a mesh; yields a function that waits until something has changed since its last call, or since the start.

    Args:
        mesh: The mesh file.
        folders: The folders with its code.

    Raises:
        OSError: The operating system watches no more files; its limit is `fs.inotify.max_user_watches`.
    """
    changes: SimpleQueue[None] = SimpleQueue()
    stop = threading.Event()
    # An editor may replace the file, so its folder is watched, without those below it.
    file = mesh.resolve()
    watches = [_begin(file.parent, stop, _OneFile(file), recursive=False)]
    watches += [_begin(folder, stop, DefaultFilter()) for folder in folders]
    linked = with_linked_folders(folders)[len(folders) :]
    watches += [_begin(folder, stop, DefaultFilter(), recursive=False) for folder in linked]
    threads = [threading.Thread(target=_follow, args=(each, changes), daemon=True) for each in watches]
    for thread in threads:
        thread.start()
    try:
        yield lambda seconds=None: _next(changes, seconds)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


class _OneFile(DefaultFilter):
    """Accepts the changes of one file."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = str(file)

    def __call__(self, _change: Change, path: str) -> bool:
        return path == self._file


def _begin(
    folder: Path, stop: threading.Event, accepts: DefaultFilter, *, recursive: bool = True
) -> Iterator[set[FileChange]]:
    """Begin to watch a folder: each change from now on is yielded."""
    watched = watch(
        folder,
        watch_filter=accepts,
        debounce=_DEBOUNCE,
        stop_event=stop,
        rust_timeout=_DEBOUNCE,
        yield_on_timeout=True,
        recursive=recursive,
        raise_interrupt=False,
    )
    return chain([next(watched)], watched)


def _follow(watched: Iterator[set[FileChange]], changes: SimpleQueue[None]) -> None:
    for changed in watched:
        if changed:
            changes.put(None)


def _next(changes: SimpleQueue[None], seconds: float | None) -> bool:
    try:
        changes.get(timeout=seconds)
    except Empty:
        return False
    while True:  # the threads may have seen one change each
        try:
            changes.get_nowait()
        except Empty:
            return True
