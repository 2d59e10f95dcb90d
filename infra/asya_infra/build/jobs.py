"""Builds the files of job runs: entry point, zip of the library, archives of jobs and of packages.

Spark unpacks the archives beside each run (`protocol §10`). The same content always gives the same bytes.
"""

import gzip
import hashlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asya.heavy.job_python import AWS_CLIENT
from asya_infra.build.folder import build_once, copy_sources
from asya_infra.build.library import copy_library, library_inputs
from asya_infra.build.packages import REQUIREMENTS, Target, install, install_required, names_packages, packages_key
from asya_infra.product.places import FILES, JOB_LIBRARY

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


_AWS_CLIENT = FILES / "requirements" / "dispatch.txt"
_SERVICES = {"s3", "secretsmanager", "ssm"}
_NAME = "packages.tgz"


def needs_packages(jobs: Path, *, aws_client: bool) -> bool:
    """Whether runs need the archive: their `requirements.txt` names packages, or a driver calls AWS itself."""
    return aws_client or names_packages(jobs / REQUIREMENTS)


def build_job_packages(
    root: Path, target: Target, jobs: Path, *, hashed: bool = False, aws_client: bool = False
) -> Archive | None:
    """Build the archive; None without packages.

    Args:
        root: the folder for builds.
        target: the interpreter of the Spark application.
        jobs: the user's folder; its `requirements.txt` is optional.
        hashed: refuse required packages without hashes.
        aws_client: whether a driver calls AWS itself, to read secrets or to linger, which needs boto3.

    Raises:
        PackagesError: a package is not available for this target, or not pinned with hashes.
    """
    if not needs_packages(jobs, aws_client=aws_client):
        return None

    def build(folder: Path) -> None:
        content = folder / "content"
        content.mkdir()
        install_required(jobs, content, target, hashed=hashed)
        if aws_client:
            _install_aws_client(content / AWS_CLIENT, target)
        pack(content, folder / _NAME)
        shutil.rmtree(content)

    client = packages_key(_AWS_CLIENT, target, hashed=True) if aws_client else []
    key = [_NAME, *packages_key(jobs / REQUIREMENTS, target, hashed=hashed), *client]
    folder = build_once(root, "job-packages", key, build)
    return Archive.of(folder / _NAME)


def _install_aws_client(folder: Path, target: Target) -> None:
    """Install boto3 with the descriptions of the services that drivers call only."""
    install(_AWS_CLIENT, folder, target, hashed=True)
    for service in (folder / "botocore" / "data").iterdir():
        if service.is_dir() and service.name not in _SERVICES:
            shutil.rmtree(service)


_ENTRY_POINT = '''"""The entry point of every job run. Its arguments name the manifest."""

import runpy

runpy.run_module("asya_spark", run_name="__main__", alter_sys=True)
'''


_ARCHIVE = "jobs.tgz"


@dataclass(frozen=True)
class JobFiles:
    """The local files and folders to upload as job code.

    Attributes:
        library: the folder of the zip with the job library.
        jobs: the archive of the user's folder.
        packages: the archive of the packages that it requires; None without any.
    """

    entry_point: Path
    library: Path
    jobs: Archive
    packages: Archive | None


def build_jobs(root: Path, target: Target, jobs: Path, *, hashed: bool = False, aws_client: bool = False) -> JobFiles:
    """Build the files of job runs.

    Args:
        root: the folder for builds.
        target: the interpreter of the Spark application.
        jobs: the user's folder; its `requirements.txt` is optional.
        hashed: refuse required packages without hashes.
        aws_client: whether a driver calls AWS itself.

    Raises:
        PackagesError: a required package cannot be installed.
    """
    entry = build_once(root, "entry", [_ENTRY_POINT], lambda folder: _write(folder / "asya_job.py", _ENTRY_POINT))

    return JobFiles(
        entry_point=entry / "asya_job.py",
        library=build_job_library(root),
        jobs=pack_user_jobs(root, jobs),
        packages=build_job_packages(root, target, jobs, hashed=hashed, aws_client=aws_client),
    )


def build_job_library(root: Path) -> Path:
    """Build the folder of the job library with the part of the library that it needs."""
    return build_once(root, "job-library", [*library_inputs(), JOB_LIBRARY], _copy_library)


def build_user_jobs(root: Path, jobs: Path) -> Path:
    """Build the folder of the user's jobs, without their packages, and without the job library, which may be in it."""
    return build_once(root, "jobs", ["jobs", jobs], lambda folder: copy_sources(jobs, folder, without=JOB_LIBRARY))


def pack_user_jobs(root: Path, jobs: Path) -> Archive:
    """Build the archive of the user's jobs. A zip that Python imports from would hide the files beside them."""
    content = build_user_jobs(root, jobs)
    folder = build_once(root, "job-code", [_ARCHIVE, content.name], lambda draft: pack(content, draft / _ARCHIVE))
    return Archive.of(folder / _ARCHIVE)


def _copy_library(folder: Path) -> None:
    copy_library(folder)
    copy_sources(JOB_LIBRARY, folder / "asya_spark")


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")
