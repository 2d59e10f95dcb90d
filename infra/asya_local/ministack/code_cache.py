"""Unpacks the code of functions and layers once for all processes of a local cloud.

MiniStack unpacks the code for each process into a folder that it deletes with the process. A cloud starts about fifty processes,
and unpacking and compiling dominate their cold starts. With this cache the folder is a link to one shared copy.

Runs in MiniStack's process, in `.venv-cloud`. It imports nothing of this project.
"""

import hashlib
import tempfile
import threading
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

_lock = threading.Lock()


class CodeCache(zipfile.ZipFile):
    """A zip file that unpacks into a shared folder once, and then links to it."""

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Replace the empty folder `path` with a link to the content.

        Raises:
            NotImplementedError: `members` asks for a part of the content.
        """
        if members is not None:
            raise NotImplementedError("the code cache unpacks whole zip files only; leave out members")
        digest = hashlib.sha256(Path(str(self.filename)).read_bytes()).hexdigest()
        shared = Path(tempfile.gettempdir(), "unpacked", digest)
        with _lock:
            if not shared.is_dir():
                shared.parent.mkdir(exist_ok=True)
                draft = tempfile.mkdtemp(dir=shared.parent)
                super().extractall(draft, super().namelist(), pwd)
                Path(draft).rename(shared)
        Path(path).rmdir()
        Path(path).symlink_to(shared)

    def namelist(self) -> list[str]:
        """Return the names that may lead out of a folder: absolute ones, and those with `..`.

        For each process MiniStack resolves every name of a layer in the file system, thousands of them, and refuses a layer
        with a name outside of its folder. The other names are inside.
        """
        return [name for name in super().namelist() if name.startswith("/") or ".." in name.split("/")]


def install(lambda_runtime: ModuleType) -> None:
    """Make MiniStack's Lambda runtime use the cache."""
    # MiniStack names LargeZipFile `LargeFileError`, which zipfile does not have.
    names = SimpleNamespace(ZipFile=CodeCache, BadZipFile=zipfile.BadZipFile, LargeFileError=zipfile.LargeZipFile)
    lambda_runtime.zipfile = names  # type: ignore[attr-defined]
