"""Builds the files of job runs: the entry point, the zip of the library, and the archives of jobs and packages."""

from dataclasses import dataclass
from pathlib import Path

from asya_infra.build.archive import Archive, pack
from asya_infra.build.folder import build_once, copy_sources
from asya_infra.build.job_packages import build_job_packages
from asya_infra.build.library import copy_library, library_inputs
from asya_infra.build.packages import Target
from asya_infra.product.places import JOB_LIBRARY

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
