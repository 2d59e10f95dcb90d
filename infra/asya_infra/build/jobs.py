"""The files a job run starts from: a script, and zips of pure Python that it imports."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from asya_infra.build.folder import build_once, copy_sources, source_files
from asya_infra.build.packages import PackagesError, Target, install
from asya_infra.repository import REPOSITORY

_LIBRARY = REPOSITORY / "functions" / "asya"
_JOB_LIBRARY = REPOSITORY / "spark_jobs" / "asya_spark"
_ENTRY_POINT = '''"""Where every job run starts; what it is to do stands in the manifest its arguments point to."""

import runpy

runpy.run_module("asya_spark", run_name="__main__", alter_sys=True)
'''


@dataclass(frozen=True)
class JobFiles:
    """The local files and folders that job code is uploaded from."""

    entry_point: Path
    library: Path
    jobs: Path


def build_jobs(root: Path, target: Target, jobs: Path) -> JobFiles:
    """Make everything a run needs.

    Args:
        root: where to build.
        target: the interpreter of the Spark application.
        jobs: the user's folder; its `requirements.txt` is optional.

    Raises:
        PackagesError: if a required package cannot be had, or has compiled parts.
    """
    entry = build_once(root, "entry", [_ENTRY_POINT], lambda folder: _write(folder / "asya_job.py", _ENTRY_POINT))
    requirements = jobs / "requirements.txt"

    def make(folder: Path) -> None:
        if requirements.is_file():
            install(requirements, folder, target)
            _refuse_compiled(requirements, folder, target)
        _copy_jobs(jobs, folder)

    return JobFiles(
        entry_point=entry / "asya_job.py",
        library=build_once(root, "job-library", [_LIBRARY, _JOB_LIBRARY], _copy_library),
        jobs=build_once(root, "jobs", ["jobs", target.key(), jobs], make),
    )


def _refuse_compiled(requirements: Path, folder: Path, target: Target) -> None:
    """Spark imports from the zip as it is, and Python cannot load compiled code from a zip."""
    compiled = sorted({path.relative_to(folder).parts[0] for path in folder.rglob("*.so")})
    if compiled:
        raise PackagesError(
            f"{requirements}: {', '.join(compiled)} cannot be imported from a zip, because of compiled parts; "
            f"pack an archive for {target.key()}, put it in S3 and name it under the actor's spark.archives"
        )


def _copy_library(folder: Path) -> None:
    copy_sources(_LIBRARY, folder / "asya")
    copy_sources(_JOB_LIBRARY, folder / "asya_spark")


def _copy_jobs(jobs: Path, folder: Path) -> None:
    """The user's folder may be the one that our own job library lies in; that one travels by itself."""
    for file in source_files(jobs):
        if _JOB_LIBRARY not in file.resolve().parents:
            destination = folder / file.relative_to(jobs)
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, destination)


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")
