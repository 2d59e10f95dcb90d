"""Unpacks the archives of job runs, each content once for all runs.

On EMR Serverless each worker unpacks its own copy. Here a copy for each run would dominate short runs: unpacking, and
compiling the modules of the archive again.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
import zipfile
from pathlib import Path


def unpack_once(archive: Path, folder: Path) -> Path:
    """Return the folder with the content of an archive; unpack it if no run did yet.

    A rename publishes the content, so concurrent runs do not interfere, and a killed one leaves no part of it.

    Args:
        archive: A zip, or a tar with any compression.
        folder: The folder for all unpacked archives.
    """
    with archive.open("rb") as file:
        target = folder / hashlib.file_digest(file, "sha256").hexdigest()[:24]
    if target.is_dir():
        return target
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".draft-") as draft:
        content = Path(draft, "content")
        content.mkdir()
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zip_file:
                zip_file.extractall(content)
        else:
            with tarfile.open(archive) as tar_file:
                tar_file.extractall(content, filter="data")
        try:
            content.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise a concurrent run was faster
                raise
    return target
