"""The emulator of AWS behind a mesh of `asya dev`: MiniStack, and the EMR Serverless stand-in if the mesh has jobs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from asya.protocol import names
from asya_local.accounts import aws_client
from asya_local.dev.resources import Resources
from asya_local.emr.settings import WorkerSettings
from asya_local.keys import REGION, AccessKey, root_key, write_keys
from asya_local.processes import read_records
from asya_local.servers import ServerOptions, Servers, start_servers

if TYPE_CHECKING:
    from asya_infra.mesh_file import LoadedMesh
    from asya_local.state_folder import StateFolder
    from asya_local.tools import Tools

# A poll takes up to 20 s, and one client serves all queues.
_POLLS = Config(read_timeout=40, max_pool_connections=250, retries={"total_max_attempts": 1}, proxies={})


@dataclass(frozen=True)
class Emulator:
    """A started emulator.

    Attributes:
        root: The key of root, which signs the calls of all functions.
    """

    folder: StateFolder
    servers: Servers
    root: AccessKey

    @property
    def endpoint(self) -> str:
        """The URL of all services except EMR Serverless."""
        return self.servers.endpoint

    @property
    def resources(self) -> Resources:
        """The resources in it."""
        return Resources(self.endpoint, self.root)

    def poll_client(self) -> Any:
        """Create a client of SQS for the polls of all queues."""
        return aws_client("sqs", self.endpoint, self.root, _POLLS)

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
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def use(self) -> None:
        """Let the AWS clients of this process call the emulator, and nothing else."""
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ.update(self.variables())
        boto3.setup_default_session()

    def ended(self) -> list[str]:
        """Return the names of its processes that have ended."""
        return [record.name for record in read_records(self.folder) if record.process() is None]


def start_emulator(folder: StateFolder, tools: Tools, loaded: LoadedMesh) -> Emulator:
    """Start the emulator for a mesh.

    Raises:
        LocalCloudError: A server does not start.
    """
    root = root_key(folder.keys)
    write_keys(folder.keys, {"root": root})
    options = ServerOptions(
        event_queues=(names.queue_name(loaded.namespace, names.COMPLETION),),
        # One driver is ready, so that a job does not wait for the start of Spark.
        workers=WorkerSettings(spares=1),
        starts_per_second=10.0,
        has_jobs=bool(tools.java_home),
    )
    return Emulator(folder, start_servers(folder, tools, root, options), root)
