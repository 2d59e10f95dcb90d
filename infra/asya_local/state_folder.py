"""The state folder: all files of one local cloud.

One is `local.json`: the addresses, names and key that a program needs to use the cloud.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from asya_local.errors import LocalCloudError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
MARK = "ASYA_LOCAL_CLOUD"
"""The environment variable that marks each process of a local cloud; its value is the path of the state folder."""


@dataclass(frozen=True)
class StateFolder:
    """The paths of a state folder; `.asya` is the default."""

    root: Path

    @classmethod
    def at(cls, path: Path) -> StateFolder:
        """Return the state folder at `path`. Links are resolved, so that a link means the same cloud.

        Raises:
            LocalCloudError: There is a file.
        """
        root = path.expanduser().resolve()
        if root.is_file():
            raise LocalCloudError(f"The state folder {root} is a file. Use another --state.")
        return cls(root)

    @property
    def connection(self) -> Path:
        """`local.json`: the connection to the cloud."""
        return self.root / "local.json"

    @property
    def processes(self) -> Path:
        """The records of the started processes."""
        return self.root / "processes.json"

    @property
    def keys(self) -> Path:
        """The keys of root and the deployer, with mode 600."""
        return self.root / "keys.json"

    @property
    def secret(self) -> Path:
        """The secret of the cloud, which its internal paths ask for, with mode 600."""
        return self.root / "internal.secret"

    @property
    def ports(self) -> Path:
        """The ports of the servers, which the next cloud takes again."""
        return self.root / "ports.json"

    @property
    def deployed(self) -> Path:
        """The hashes of what runs in the cloud."""
        return self.root / "deployed.json"

    @property
    def dev(self) -> Path:
        """Says that what runs is a mesh of `asya dev` and no local cloud; also after its command was killed."""
        return self.root / "dev"

    @property
    def gateway_port(self) -> Path:
        """The port of the gateway of `asya dev`, which the next one takes again."""
        return self.root / "gateway.port"

    @property
    def snapshot(self) -> Path:
        """The state of the cloud after its first deployment, with which the next one starts; `down` keeps it."""
        return self.root / "snapshot"

    @property
    def logs(self) -> Path:
        """The log files."""
        return self.root / "logs"

    @property
    def temporary(self) -> Path:
        """The TMPDIR of all processes of the cloud; `down` removes it."""
        return self.root / "tmp"

    @property
    def ministack(self) -> Path:
        """MiniStack's S3 objects."""
        return self.root / "ministack"

    @property
    def emr(self) -> Path:
        """The EMR Serverless stand-in: its settings and one folder for each job run."""
        return self.root / "emr"

    @property
    def cdk_out(self) -> Path:
        """The synthesized templates and assets."""
        return self.root / "cdk.out"

    @property
    def outputs(self) -> Path:
        """The outputs of the deployed stacks."""
        return self.root / "outputs.json"

    @property
    def cdk_home(self) -> Path:
        """The CDK's own files, instead of those in the user's home."""
        return self.root / "cdk"

    def create(self) -> None:
        """Create the folders that the processes expect."""
        self._make_private()
        for folder in (self.logs, self.temporary, self.ministack, self.emr, self.cdk_home):
            folder.mkdir(exist_ok=True)
        (self.root / ".gitignore").write_text("*\n")

    def rotate_logs(self) -> None:
        """Rename the logs of the last time; delete the older ones."""
        for log in self.logs.glob("*.log"):
            log.replace(log.with_suffix(".log.previous"))

    def _make_private(self) -> None:
        """Create the folder, or close it to other users: it holds keys, and the code that the cloud runs."""
        try:
            self.root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise LocalCloudError(
                f"The state folder {self.root} cannot be made: {error.strerror}. Use another --state."
            ) from None
        try:
            self.root.chmod(PRIVATE_FOLDER)
        except PermissionError:
            raise LocalCloudError(f"{self.root} belongs to another user. Use another --state.") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one `up` or `down`; the operating system releases the lock when the process ends.

        Raises:
            LocalCloudError: Another `up` or `down` holds the lock, or the folder cannot be made or belongs to another user.
        """
        self._make_private()
        handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LocalCloudError(
                    f"Another `asya local` or `asya dev` uses {self.root}. Wait until it ends, end it with Ctrl-C, or use "
                    "another --state."
                ) from None
            yield
        finally:
            os.close(handle)


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically; only its owner can read it."""
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    draft.replace(path)


@dataclass(frozen=True)
class LocalConnection:
    """The content of `local.json`: endpoints, resource names and the operator's key."""

    endpoint_url: str
    emr_endpoint_url: str
    gateway_url: str
    region: str
    access_key: str
    secret_key: str
    namespace: str
    results_bucket: str
    results_prefix: str
    data_bucket: str
    data_prefix: str
    tasks_table: str
    mesh: str
    """Path of the deployed mesh file."""
    jwt_gateway_url: str | None = None
    """The gateway for callers with tokens; None if the mesh accepts no tokens."""

    def write(self, path: Path) -> None:
        """Write the file atomically, with mode 600."""
        write_private(path, json.dumps(asdict(self), indent=2) + "\n")

    def environment(self) -> dict[str, str]:
        """Return the environment variables by which AWS's tools and SDKs find the cloud, and programs the mesh."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_ENDPOINT_URL_EMR_SERVERLESS": self.emr_endpoint_url,
            "ASYA_GATEWAY_URL": self.gateway_url,
            "ASYA_DATA_URI": f"s3://{self.data_bucket}/{self.data_prefix}",
            "ASYA_RESULTS_URI": f"s3://{self.results_bucket}/{self.results_prefix}",
        }

    @classmethod
    def read(cls, path: Path) -> LocalConnection | None:
        """Read the file; return None if it is missing, or if another version wrote it."""
        try:
            return cls(**json.loads(path.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None


def bucket_and_prefix(uri: str) -> tuple[str, str]:
    """Split `s3://bucket/prefix/`; the prefix is empty or ends with a slash."""
    parts = urlsplit(uri)
    prefix = parts.path.lstrip("/")
    return parts.netloc, prefix if not prefix or prefix.endswith("/") else prefix + "/"
