"""Builds the archive with the Python packages of job runs, which Spark unpacks beside each run (`protocol §10`)."""

import gzip
import hashlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asya.spark.job_python import AWS_CLIENT
from asya_infra.build.folder import build_once
from asya_infra.build.packages import (
    REQUIREMENTS,
    Target,
    install,
    install_required,
    names_packages,
    packages_key,
)
from asya_infra.product.places import FILES

_AWS_CLIENT = FILES / "requirements" / "dispatch.txt"
_SERVICES = {"s3", "secretsmanager", "ssm"}
_ARCHIVE, _DIGEST = "packages.tar.gz", "digest"
# Higher levels take seconds for pandas and save little.
_COMPRESSION = 6


@dataclass(frozen=True)
class JobPackages:
    """The archive of packages.

    Attributes:
        archive: a `.tar.gz`.
        digest: the hash of its content before compression, which differs between versions of zlib.
    """

    archive: Path
    digest: str


def needs_packages(jobs: Path, *, aws_client: bool) -> bool:
    """Whether runs need the archive: their `requirements.txt` names packages, or a driver calls AWS itself."""
    return aws_client or names_packages(jobs / REQUIREMENTS)


def build_job_packages(
    root: Path, target: Target, jobs: Path, *, hashed: bool = False, aws_client: bool = False
) -> JobPackages | None:
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
        (folder / _DIGEST).write_text(_pack(content, folder / _ARCHIVE))
        shutil.rmtree(content)

    client = packages_key(_AWS_CLIENT, target, hashed=True) if aws_client else []
    key = [*packages_key(jobs / REQUIREMENTS, target, hashed=hashed), *client]
    folder = build_once(root, "job-packages", key, build)
    return JobPackages(folder / _ARCHIVE, (folder / _DIGEST).read_text())


def _install_aws_client(folder: Path, target: Target) -> None:
    """Install boto3 with the descriptions of the services that drivers call only."""
    install(_AWS_CLIENT, folder, target, hashed=True)
    for service in (folder / "botocore" / "data").iterdir():
        if service.is_dir() and service.name not in _SERVICES:
            shutil.rmtree(service)


def _pack(content: Path, archive: Path) -> str:
    """Pack a folder; return the hash of its content. The same content always gives the same bytes."""
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
    return digest.hexdigest()


def _entries(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.is_file():
            yield path
