"""Builds the archive with the Python packages of job runs, which Spark unpacks beside each run (`protocol §10`)."""

import shutil
from pathlib import Path

from asya.heavy.job_python import AWS_CLIENT
from asya_infra.build.archive import Archive, pack
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
