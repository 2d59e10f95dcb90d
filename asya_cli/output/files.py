"""Writes files that a user names: whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write beside a file, which is replaced when the block ends. After an error the file is as it was.

    The draft is new and its name is random, so a link that another user has planted in the folder leads nowhere. Devices such as
    /dev/stdout, and pipes of this user, are written as they are.

    Raises:
        OSError: The file cannot be written.
    """
    if _is_stream(path):
        with path.open("wb") as stream:
            yield stream
        return
    number, name = tempfile.mkstemp(prefix=f".{path.name[:100]}-", suffix=".part", dir=path.parent)
    draft = path.parent / Path(name).name
    try:
        with os.fdopen(number, "wb") as output:
            os.fchmod(number, _mode(path))
            yield output
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _is_stream(path: Path) -> bool:
    folder = os.path.realpath(path.parent)
    if folder == "/dev" or folder.startswith("/proc/"):
        return True
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISFIFO(status.st_mode) and status.st_uid == os.geteuid()


def _mode(path: Path) -> int:
    """Return the mode of a file that is replaced, or that of a new one."""
    try:
        status = path.lstat()
    except OSError:
        status = None
    if status is not None and stat.S_ISREG(status.st_mode):
        return status.st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
