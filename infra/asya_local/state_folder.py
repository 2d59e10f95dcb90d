"""The state folder: everything one local cloud has on disk, and where each thing lies."""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya_local.errors import LocalCloudError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARK = "ASYA_LOCAL_CLOUD"
"""Environment variable that every process of a local cloud carries: the path of its state folder."""


@dataclass(frozen=True)
class StateFolder:
    """The layout of a state folder (`.asya` unless told otherwise). Paths only; nothing is read here."""

    root: Path

    @classmethod
    def at(cls, path: Path) -> StateFolder:
        """The state folder at `path`, by its real absolute path, so that a link to it means the same cloud."""
        return cls(path.expanduser().resolve())

    @property
    def connection(self) -> Path:
        """`local.json`: how to talk to the cloud."""
        return self.root / "local.json"

    @property
    def processes(self) -> Path:
        """The records of the processes that were started."""
        return self.root / "processes.json"

    @property
    def keys(self) -> Path:
        """Root's and the deployer's keys; readable by the owner only."""
        return self.root / "keys.json"

    @property
    def logs(self) -> Path:
        """The folder of the log files."""
        return self.root / "logs"

    @property
    def temporary(self) -> Path:
        """TMPDIR of every process of the cloud; removed by `down`."""
        return self.root / "tmp"

    @property
    def ministack(self) -> Path:
        """MiniStack's own state and S3 folders."""
        return self.root / "ministack"

    @property
    def emr(self) -> Path:
        """The EMR Serverless stand-in: its settings, and one folder per job run."""
        return self.root / "emr"

    @property
    def cdk_out(self) -> Path:
        """The synthesized templates and assets."""
        return self.root / "cdk.out"

    @property
    def source_digest(self) -> Path:
        """What `cdk.out` was made from, as a hash."""
        return self.root / "cdk.made-from"

    @property
    def outputs(self) -> Path:
        """What the deployed stacks say of themselves."""
        return self.root / "outputs.json"

    @property
    def cdk_home(self) -> Path:
        """What the CDK command would otherwise keep in the user's home."""
        return self.root / "cdk"

    def create(self) -> None:
        """Make the folders that the processes expect."""
        self.root.mkdir(parents=True, exist_ok=True)
        for folder in (self.logs, self.temporary, self.ministack, self.emr, self.cdk_home):
            folder.mkdir(exist_ok=True)
        (self.root / ".gitignore").write_text("*\n")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one `up` or `down` at a time; the system lets go of it when the process dies.

        Raises:
            LocalCloudError: Another `up` or `down` of this folder is at work.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LocalCloudError(
                    f"Another `asya local` command is at work on {self.root}. Wait for it, or use --state."
                ) from None
            yield
        finally:
            os.close(handle)
