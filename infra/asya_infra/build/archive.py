"""Packs folders into archives that Spark unpacks beside each run. The same content always gives the same bytes."""

import gzip
import hashlib
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DIGEST = ".digest"
# Higher levels take seconds for pandas and save little.
_COMPRESSION = 6


@dataclass(frozen=True)
class Archive:
    """An archive of files.

    Attributes:
        archive: a `.tgz`. The CDK names an asset by the last ending of its file, and Spark does not unpack a `.gz`.
        digest: the hash of its content before compression, which differs between versions of zlib.
    """

    archive: Path
    digest: str

    @classmethod
    def of(cls, archive: Path) -> "Archive":
        """Return the archive that `pack` wrote to a path."""
        return cls(archive, archive.with_suffix(_DIGEST).read_text())


def pack(content: Path, archive: Path) -> None:
    """Pack a folder into a `.tgz`, and write its digest beside it."""
    plain = archive.with_suffix("")
    with tarfile.open(plain, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in _entries(content):
            info = tarfile.TarInfo(str(path.relative_to(content)))
            is_executable = path.is_dir() or os.access(path, os.X_OK)
            info.mode = 0o755 if is_executable else 0o644
            if path.is_dir():
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = path.stat().st_size
                with path.open("rb") as file:
                    tar.addfile(info, file)
    digest = hashlib.sha256()
    with (
        plain.open("rb") as source,
        archive.open("wb") as target,
        gzip.GzipFile("", "wb", _COMPRESSION, target, mtime=0) as packed,
    ):
        while chunk := source.read(1 << 20):
            digest.update(chunk)
            packed.write(chunk)
    plain.unlink()
    archive.with_suffix(_DIGEST).write_text(digest.hexdigest())


def _entries(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.is_file():
            yield path
