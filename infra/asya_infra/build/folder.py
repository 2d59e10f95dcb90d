"""Build folders, cached by a hash of their inputs."""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

# A part of every hash. Increase it after a change to how folders are built.
_VERSION = "1"
_UNUSED_SECONDS = 7 * 86400
_SKIPPED = {"__pycache__", "node_modules"}


class CacheError(Exception):
    """The folder of builds and environments cannot be written; the message says what to do."""


@contextmanager
def writing_to(root: Path) -> Iterator[None]:
    """Turn the refusal of the system to write below the cache into an error for people.

    Raises:
        CacheError: The folder cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise CacheError(
            f"the cache {root} cannot be written: {error.strerror or error}. Give it to your user, or name another folder "
            "with the variable XDG_CACHE_HOME."
        ) from error


def source_files(folder: Path) -> Iterator[Path]:
    """Yield the files to deploy from a folder, in sorted order. Skips hidden and compiled files.

    A skipped folder is not entered: an environment beside the code has thousands of files.
    """
    found: list[Path] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _is_skipped(name)]
        paths = (Path(parent, name) for name in files if not _is_skipped(name) and not name.endswith(".pyc"))
        found += (path for path in paths if path.is_file())
    yield from sorted(found)


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED or name.endswith(".egg-info")


def digest(parts: Iterable[str | bytes | Path]) -> str:
    """Return a hash of texts, files and folders. File names within a folder count."""
    total = hashlib.sha256(_VERSION.encode())
    for part in parts:
        for item in _chunks(part):
            total.update(len(item).to_bytes(8, "big"))
            total.update(item)
    return total.hexdigest()[:24]


def _chunks(part: str | bytes | Path) -> Iterator[bytes]:
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


def build_once(root: Path, name: str, inputs: Iterable[str | bytes | Path], build: Callable[[Path], None]) -> Path:
    """Return the folder `name-{hash}` below `root`, and call `build` to fill it if it does not exist.

    A rename publishes the folder atomically, so concurrent builds do not interfere.
    """
    target = root / f"{name}-{digest(inputs)}"
    if target.is_dir():
        _note_use(target)
        return target
    with writing_to(root):
        root.mkdir(parents=True, exist_ok=True)
        _remove_unused(root, name)
        draft = Path(tempfile.mkdtemp(dir=root, prefix=f".{name}-"))
    try:
        build(draft)
        draft.chmod(0o755)
        try:
            draft.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise a concurrent build was faster
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    _note_use(target)
    return target


def _note_use(folder: Path) -> None:
    """Note when a build was used, by the clock that says how long ago that is: a file system may have its own."""
    now = time.time()
    os.utime(folder, (now, now))


def _remove_unused(root: Path, name: str) -> None:
    """Remove builds of this name that were not used for a week."""
    for folder in root.glob(f"{name}-*"):
        if folder.stat().st_mtime < time.time() - _UNUSED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def copy_sources(source: Path, target: Path) -> None:
    """Copy the files of `source_files` to another folder."""
    for file in source_files(source):
        destination = target / file.relative_to(source)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, destination)
