"""The files a job run starts from: a script, zips of pure Python, and an archive of packages."""

import gzip
import shutil
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from infra.build.folder import built, copy_sources
from infra.build.packages import Target, install

_REPOSITORY = Path(__file__).parents[2]
_LIBRARY = _REPOSITORY / "functions" / "asya"
_JOB_LIBRARY = _REPOSITORY / "spark_jobs" / "asya_spark"
_ARCHIVE = "packages.tar.gz"
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
    packages: Path


def build_jobs(root: Path, target: Target, jobs: Path) -> JobFiles:
    """Make everything a run needs. Compiled packages cannot be imported from a zip, so packages travel unpacked.

    Args:
        root: where to build.
        target: the interpreter of the Spark application.
        jobs: the user's folder; its `requirements.txt` is optional.
    """
    entry = built(root, "entry", [_ENTRY_POINT], lambda folder: _write(folder / "asya_job.py", _ENTRY_POINT))
    return JobFiles(
        entry_point=entry / "asya_job.py",
        library=built(root, "job-library", [_LIBRARY, _JOB_LIBRARY], _copy_library),
        jobs=built(root, "jobs", ["jobs", jobs], lambda folder: _copy_jobs(jobs, folder)),
        packages=_build_packages(root, target, jobs) / _ARCHIVE,
    )


def _copy_library(folder: Path) -> None:
    copy_sources(_LIBRARY, folder / "asya")
    copy_sources(_JOB_LIBRARY, folder / "asya_spark")


def _copy_jobs(jobs: Path, folder: Path) -> None:
    """The user's folder may be the one that our own job library lies in; that one travels by itself."""
    for item in sorted(jobs.iterdir()):
        if item.resolve() == _JOB_LIBRARY or item.name.startswith((".", "__pycache__")):
            continue
        if item.is_dir():
            copy_sources(item, folder / item.name)
        else:
            _write(folder / item.name, item.read_bytes())


def _build_packages(root: Path, target: Target, jobs: Path) -> Path:
    ours, users = _REPOSITORY / "requirements" / "layer.txt", jobs / "requirements.txt"

    def make(folder: Path) -> None:
        staged = folder / "staged"
        install(ours, staged, target, hashed=True)
        if users.is_file():
            install(users, staged, target)
        _pack(staged, folder / _ARCHIVE)
        shutil.rmtree(staged)

    return built(root, "job-packages", ["packages", target.key(), ours, users], make)


def _pack(source: Path, archive: Path) -> None:
    """Pack a folder so that the same content gives the same bytes: no times, no owners, a fixed order."""
    plain = BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for path in sorted(source.rglob("*")):
            if path.is_file():
                entry = tar.gettarinfo(path, str(path.relative_to(source)))
                entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname, entry.mode = 0, 0, 0, "", "", 0o644
                with path.open("rb") as content:
                    tar.addfile(entry, content)
    archive.write_bytes(gzip.compress(plain.getvalue(), mtime=0))


def _write(path: Path, content: str | bytes) -> None:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
