"""The code of functions and their layers, unpacked and compiled once for all processes of a local cloud that run it.

MiniStack unpacks them for each process that it starts, into a folder that goes with the process; a cloud starts some fifty, and
most of a cold start went into unpacking and compiling, most of a cloud's end into removing. Here such a folder is a link.

Runs in the local cloud's own virtual environment, within MiniStack's process; imports nothing of ours.
"""

import hashlib
import tempfile
import threading
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

_unpacking = threading.Lock()


class CodeCache(zipfile.ZipFile):
    """A zip whose content is put where it is wanted by a link, to where it was unpacked when it was first wanted."""

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Fill `path`, an empty folder, with the whole content."""
        if members is not None:
            raise NotImplementedError("a part of a zip cannot be shared")
        digest = hashlib.sha256(Path(str(self.filename)).read_bytes()).hexdigest()
        shared = Path(tempfile.gettempdir(), "unpacked", digest)
        with _unpacking:
            if not shared.is_dir():
                shared.parent.mkdir(exist_ok=True)
                draft = tempfile.mkdtemp(dir=shared.parent)
                super().extractall(draft, pwd=pwd)
                Path(draft).rename(shared)
        Path(path).rmdir()
        Path(path).symlink_to(shared)


def install(lambda_runtime: ModuleType) -> None:
    """Have MiniStack's runtime for Lambda unpack so."""
    # It knows LargeZipFile by a name that the module does not have.
    names = SimpleNamespace(ZipFile=CodeCache, BadZipFile=zipfile.BadZipFile, LargeFileError=zipfile.LargeZipFile)
    lambda_runtime.zipfile = names  # type: ignore[attr-defined]
