"""The jobs of a mesh of `asya dev`: uploads their code for the dispatcher, and shows what they print."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from asya.function.aws.settings import SparkSettings
from asya_infra.build.jobs import build_jobs
from asya_infra.build.packages import Target
from asya_infra.product.places import BUILD
from asya_local.account import aws_client
from asya_local.code_updates import zipped
from asya_local.dev.deployment import CODE_BUCKET
from asya_local.dev.printed_lines import LEVEL
from asya_local.emr.drivers.job_environment import job_python
from asya_local.emr.settings import ApplicationSettings

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from asya_local.account import AccessKey
    from asya_local.dev.deployment import Deployment


def upload_jobs(mesh: Deployment, endpoint: str, root: AccessKey) -> SparkSettings:
    """Upload the code of the jobs as it is now. Its keys follow from its content, so a run keeps the code of its start.

    Raises:
        PackagesError: A required package cannot be installed.
    """
    actors = [mesh.table.actors[name] for name in mesh.heavy_actors]
    files = build_jobs(
        BUILD,
        Target(interpreter=job_python(BUILD)),
        mesh.loaded.jobs_folder,
        hashed=mesh.loaded.mesh.requires_hashes,
        aws_client=any(actor.secrets or (actor.spark is not None and actor.spark.linger) for actor in actors),
    )
    s3 = aws_client("s3", endpoint, root)

    def upload(content: bytes, suffix: str) -> str:
        key = f"{mesh.loaded.namespace}/{sha256(content).hexdigest()}{suffix}"
        s3.put_object(Bucket=CODE_BUCKET, Key=key, Body=content)
        return f"s3://{CODE_BUCKET}/{key}"

    def upload_file(path: Path) -> str:
        return upload(path.read_bytes(), "".join(path.suffixes))

    packages = files.packages
    return SparkSettings(
        application_id=ApplicationSettings.application_id,
        role_prefix=mesh.addresses.role_arn_prefix,
        entry_point=upload_file(files.entry_point),
        py_files=(upload(zipped(files.library), ".zip"),),
        jobs=upload_file(files.jobs.archive),
        access_policy_prefix=mesh.addresses.access_policy_prefix,
        packages=None if packages is None else upload_file(packages.archive),
    )


_WHOSE = "a job"
"""Of the lines of all jobs. It is no name of an actor."""
_POLL_SECONDS = 0.3
_QUIET_LOOKS = 3
_LONGEST = 64 * 1024
"""Bytes that one look takes of a run; the rest comes with the next ones."""


@dataclass
class JobOutput:
    """The output of the runs in a folder.

    Attributes:
        folder: The folder with one folder for each run.
        tell: Takes the level and the text of what the author should know.
    """

    folder: Path
    tell: Callable[[str, str], None]
    _read: dict[Path, int] = field(default_factory=dict)
    _quiet: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Leave out what earlier runs have printed."""
        for path in self._files():
            self._read[path] = path.stat().st_size

    def follow(self, ended: threading.Event) -> None:
        """Show new lines until the mesh ends."""
        while not ended.wait(_POLL_SECONDS):
            self.show()

    def show(self) -> None:
        """Show the lines that have come since the last look, and a line without an end that has not grown for a while."""
        for path in self._files():
            start = self._read.get(path, 0)
            try:
                with path.open("rb") as file:
                    file.seek(start)
                    new = file.read(_LONGEST)
            except FileNotFoundError:
                continue  # removed meanwhile
            end = new.rfind(b"\n") + 1
            if not end and new and (len(new) == _LONGEST or self._is_quiet(path, len(new))):
                end = len(new)
            if end:
                self._read[path] = start + end
                self._quiet.pop(path, None)
                for line in new[:end].decode(errors="replace").rstrip("\n").split("\n"):
                    self.tell(LEVEL, f"{_WHOSE}: {line}")

    def _is_quiet(self, path: Path, length: int) -> bool:
        """Return whether the beginning of a line has been the same for some looks."""
        before, looks = self._quiet.get(path, (0, 0))
        self._quiet[path] = (length, looks + 1 if before == length else 1)
        return self._quiet[path][1] > _QUIET_LOOKS

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*/stdout"))
