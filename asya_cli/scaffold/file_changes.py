"""Writes files all or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def make_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder with files. It appears complete, or not at all.

    Args:
        folder: the folder, which does not exist or is empty.
        files: the texts by relative path.

    Raises:
        OSError: The folder exists and is not empty, or cannot be made.
    """
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, text in files.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        draft.chmod(0o777 & ~_umask())  # mkdtemp makes it private
        draft.replace(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


@contextmanager
def new_files(files: Mapping[Path, str]) -> Iterator[None]:
    """Write new files, and remove them again if the block raises.

    Raises:
        FileExistsError: A file exists already.
        OSError: A file cannot be written.
    """
    made: list[Path] = []
    try:
        for path, text in files.items():
            for folder in reversed([each for each in path.parents if not each.exists()]):
                folder.mkdir()
                made.append(folder)
            with path.open("x", encoding="utf-8", newline="") as file:
                made.append(path)
                file.write(text)
        yield
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise


@contextmanager
def draft_of(path: Path, text: str) -> Iterator[Path]:
    """Write a text beside a file; the text replaces the file when the block ends, unless the block raises.

    Yields:
        The path of the draft.
    """
    target = path.resolve() if path.is_symlink() else path  # a link stays a link
    number, name = tempfile.mkstemp(prefix=f".{target.name}-", suffix=target.suffix, dir=target.parent)
    draft = target.parent / Path(name).name
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        shutil.copymode(target, draft)
        yield draft
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
