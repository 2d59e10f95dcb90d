"""Starts a mesh of `asya dev` with its emulator of AWS, and ends it with all its processes.

The emulator is MiniStack, and for a mesh with jobs the EMR Serverless stand-in.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from asya.protocol import names
from asya_local.account import REGION, AccessKey, aws_client, root_key, write_keys
from asya_local.emr.settings import WorkerSettings
from asya_local.errors import LocalCloudError
from asya_local.processes import clean_up, read_records, signals_ignored
from asya_local.servers import ServerOptions, Servers, running_servers, start_job_server, start_servers, unproxied
from asya_local.state_folder import StateFolder
from asya_local.tools import Tools, find_java, find_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from asya_local.dev.resources import Resources
    from asya_local.dev.running_mesh import RunningMesh
    from asya_local.steps import Steps

# A poll takes up to 20 s, and one client serves all queues.
_POLLS = Config(read_timeout=40, max_pool_connections=250, retries={"total_max_attempts": 1}, proxies={})


@dataclass(frozen=True)
class Emulator:
    """A started emulator.

    Attributes:
        root: The key of root, which signs the calls of all functions.
        closing: Set before its processes are ended.
    """

    folder: StateFolder
    tools: Tools
    servers: Servers
    root: AccessKey
    closing: threading.Event = field(default_factory=threading.Event)
    _jobs: list[threading.Thread] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        """The URL of all services except EMR Serverless."""
        return self.servers.endpoint

    @cached_property
    def resources(self) -> Resources:
        """The resources in it."""
        # Imported late: the emulator starts meanwhile.
        from asya_local.dev.resources import Resources

        return Resources(self.endpoint, self.root)

    def poll_client(self) -> Any:
        """Create a client of SQS for the polls of all queues."""
        return aws_client("sqs", self.endpoint, self.root, _POLLS)

    def streams_client(self) -> Any:
        """Create a client of DynamoDB Streams."""
        return aws_client("dynamodbstreams", self.endpoint, self.root)

    def variables(self) -> dict[str, str]:
        """Return the environment variables by which the AWS SDKs find the emulator, and nothing of the developer's."""
        return {
            **self.root.environment(),
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_EMR_SERVERLESS": self.servers.emr_endpoint,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            **unproxied({}),
        }

    def use(self) -> None:
        """Let the AWS clients of this process call the emulator, and nothing else."""
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ.update(self.variables())
        boto3.setup_default_session()

    def start_jobs(self, namespace: str, tell: Callable[[str, str], None]) -> None:
        """Start the EMR Serverless stand-in, unless it was started before. Runs wait for it, and nothing else does.

        Args:
            namespace: The namespace of the mesh.
            tell: Takes the level and the text of what the author should know.
        """
        if not self._jobs:
            thread = threading.Thread(target=self._start_jobs, args=(namespace, tell), name="jobs", daemon=True)
            self._jobs.append(thread)
            thread.start()

    def _start_jobs(self, namespace: str, tell: Callable[[str, str], None]) -> None:
        options = ServerOptions(
            event_queues=(names.queue_name(namespace, names.COMPLETION),),
            # One driver is ready, so that a job does not wait for the start of Spark.
            workers=WorkerSettings(spares=1),
            starts_per_second=10.0,
        )
        try:
            tools = replace(self.tools, java_home=find_java())
            start_job_server(self.folder, tools, self.root, options, self.servers)
        except LocalCloudError as error:
            if not self.closing.is_set():
                tell("error", f"jobs cannot run: {error}")

    def ended(self) -> list[str]:
        """Return the names of its processes that have ended."""
        return [record.name for record in read_records(self.folder) if record.process() is None]


def start_emulator(folder: StateFolder, tools: Tools) -> Emulator:
    """Start MiniStack.

    Raises:
        LocalCloudError: It does not start.
    """
    root = root_key(folder.keys)
    if not folder.keys.exists():  # a local cloud in this folder keeps its own keys
        write_keys(folder.keys, {"root": root})
    servers = start_servers(folder, tools, root, ServerOptions(has_jobs=False))
    return Emulator(folder, tools, servers, root)


@dataclass(frozen=True)
class DevOptions:
    """What to run, and where.

    Attributes:
        mesh: The mesh file.
        state: The state folder.
        stage: The stage of the mesh file.
        secrets: The file with the values of secrets; None for `secrets.env` in the state folder.
    """

    mesh: Path
    state: Path
    stage: str = ""
    secrets: Path | None = None


@contextmanager
def running(options: DevOptions, tell: Callable[[str, str], None], steps: Steps) -> Iterator[RunningMesh]:
    """Start a mesh; it ends with the block.

    Args:
        options: What to run, and where.
        tell: Takes the level and the text of what the author should know.
        steps: Measures the steps of the start.

    Raises:
        LocalCloudError: The mesh file has problems, a tool is missing, a process does not start, or a local cloud runs.
        PackagesError: A required package cannot be installed.
    """
    if not options.mesh.exists():  # before a folder is made
        from asya_local.sources import load as load_mesh

        load_mesh(options.mesh, options.stage)
    folder = StateFolder.at(options.state)
    with folder.locked():
        if running_servers(folder) is not None and not folder.dev.exists():
            raise LocalCloudError(
                f"A local cloud runs in {folder.root}. Run `asya local down --state {options.state}` first, or use another --state."
            )
        started: list[RunningMesh] = []
        try:
            clean_up(folder)
            folder.create()
            folder.rotate_logs()
            folder.dev.touch()
            yield _start(options, folder, tell, steps, started)
        finally:
            with signals_ignored():
                for each in started:
                    each.close()
                clean_up(folder)


def _start(
    options: DevOptions, folder: StateFolder, tell: Callable[[str, str], None], steps: Steps, started: list[RunningMesh]
) -> RunningMesh:
    """Start the emulator, and meanwhile import what the mesh needs, which takes as long.

    Args:
        started: Gets the mesh as soon as it has something to close.
    """
    with steps.step("emulator"), ThreadPoolExecutor(1) as executor:
        starting = executor.submit(start_emulator, folder, find_tools(spark=False, cdk=False))
        from asya_local.dev.running_mesh import RunningMesh
        from asya_local.sources import load

        loaded = load(options.mesh, options.stage)
        emulator = starting.result()
    emulator.use()
    with steps.step("mesh"):
        running_mesh = RunningMesh(folder, emulator, tell, options.secrets)
        started.append(running_mesh)
        running_mesh.begin(loaded)
    return running_mesh
