"""Folders that are made once for what they are made from, and then found again by its hash."""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

# Part of every hash: raise it when the way something is built changes.
_VERSION = "1"
_UNUSED_SECONDS = 7 * 86400
_SKIPPED = {"__pycache__", "node_modules"}


def source_files(folder: Path) -> Iterator[Path]:
    """The files below a folder that are worth shipping, in a fixed order: nothing hidden, nothing compiled."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part in _SKIPPED or part.endswith(".egg-info") for part in parts)
        if path.is_file() and not hidden and path.suffix != ".pyc":
            yield path


def digest(parts: Iterable[str | bytes | Path]) -> str:
    """A hash of texts and of the contents of files and folders (their names within the folder included)."""
    total = hashlib.sha256(_VERSION.encode())
    for part in parts:
        for item in _pieces(part):
            total.update(len(item).to_bytes(8, "big"))
            total.update(item)
    return total.hexdigest()[:24]


def _pieces(part: str | bytes | Path) -> Iterator[bytes]:
    if isinstance(part, str):
        yield part.encode()
    elif isinstance(part, bytes):
        yield part
    elif part.is_dir():
        for file in source_files(part):
            yield str(file.relative_to(part)).encode()
            yield file.read_bytes()
    else:
        yield part.read_bytes() if part.is_file() else b""


def build_once(root: Path, name: str, made_from: Iterable[str | bytes | Path], make: Callable[[Path], None]) -> Path:
    """The folder `name-{hash}` below `root`, made by `make` unless it is there already.

    It appears whole or not at all, so that two builds at the same time do not disturb each other.
    """
    target = root / f"{name}-{digest(made_from)}"
    if target.is_dir():
        os.utime(target)
        return target
    root.mkdir(parents=True, exist_ok=True)
    _forget_unused(root, name)
    draft = Path(tempfile.mkdtemp(dir=root, prefix=f".{name}-"))
    try:
        make(draft)
        draft.chmod(0o755)
        try:
            draft.rename(target)
        except OSError:
            if not target.is_dir():  # else somebody else was quicker
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _forget_unused(root: Path, name: str) -> None:
    """Remove builds of this name that nobody has asked for in a week."""
    for folder in root.glob(f"{name}-*"):
        if folder.stat().st_mtime < time.time() - _UNUSED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def copy_sources(source: Path, target: Path) -> None:
    """Copy what `source_files` finds."""
    for file in source_files(source):
        destination = target / file.relative_to(source)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, destination)
