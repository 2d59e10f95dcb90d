"""Build folders, cached by a hash of their inputs."""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType

from asya_infra.build.code_files import code_files, deployable

_UNUSED_SECONDS = 7 * 86400


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
    """Yield the files of a folder of code that are deployed (`code_files`), by path."""
    yield from (file.source for file in code_files(folder).files)


def digest(parts: Iterable[str | bytes | Path]) -> str:
    """Return a hash of texts, files and folders. Names within a folder count, and whether a file may be executed."""
    total = hashlib.sha256()
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
        for file in code_files(part).files:
            yield f"{file.target} {file.is_executable}".encode()
            yield _content(file.source)
    else:
        yield _content(part) if part.is_file() else b""


def _content(file: Path) -> bytes:
    """A hash of a file, which may be larger than memory."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def build_once(root: Path, name: str, inputs: Iterable[str | bytes | Path], build: Callable[[Path], None]) -> Path:
    """Return the folder `name-{hash}` below `root`, and call `build` to fill it if it does not exist.

    The hash is that of the inputs and of the code that builds.
    A rename publishes the folder atomically, so concurrent builds do not interfere.
    """
    target = root / f"{name}-{digest([*_builder(build), *inputs])}"
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


def _builder(build: Callable[[Path], None]) -> Iterator[bytes]:
    """Yield the code that builds: this package, and the module of the function. Another version may build otherwise."""
    yield _own_code()
    if isinstance(build, FunctionType):
        yield Path(build.__code__.co_filename).read_bytes()


@cache
def _own_code() -> bytes:
    return b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))


def _note_use(folder: Path) -> None:
    """Note when a build was used, by the clock that says how long ago that is: a file system may have its own."""
    now = time.time()
    os.utime(folder, (now, now))


def _remove_unused(root: Path, name: str) -> None:
    """Remove builds of this name that were not used for a week."""
    for folder in root.glob(f"{name}-*"):
        if folder.stat().st_mtime < time.time() - _UNUSED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def link(source: str, target: str) -> None:
    """Make a further name of a file that nobody changes: a large package is then there in milliseconds."""
    try:
        os.link(source, target)
    except OSError:  # file systems without hard links, and what is there
        shutil.copy2(source, target)


def copy_sources(source: Path, target: Path, without: Path | None = None) -> None:
    """Copy the deployed files of a folder to another one. Files that may be executed stay so.

    Raises:
        CodeFilesError: a file cannot be deployed.
    """
    for file in deployable(source, without).files:
        destination = target / file.target
        destination.parent.mkdir(parents=True, exist_ok=True)
        destination.unlink(missing_ok=True)
        shutil.copyfile(file.source, destination)
        destination.chmod(0o755 if file.is_executable else 0o644)
