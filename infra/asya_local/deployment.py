"""Deploys the stacks of a mesh to the local cloud with the `cdk` commands that AWS gets.

The state after the first deployment is saved. The next cloud of the folder starts with it instead.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from asya_infra.node import NODE_VARIABLES
from asya_infra.product.places import FILES
from asya_local.account import ACCOUNT_ID, REGION, AccessKey, read_secret
from asya_local.authentication.admission import SECRET_HEADER, SNAPSHOT_PATH
from asya_local.errors import LocalCloudError
from asya_local.servers import LOOPBACK_OPENER, Servers, tail, unproxied
from asya_local.sources import Sources
from asya_local.state_folder import MARK, LocalConnection, StateFolder, write_private
from asya_local.tools import CdkTools

_SECONDS = 60
SHORT_WAITS = Path(__file__).with_name("short_waits.cjs")
"""Node.js loads it before `cdk`: the local cloud is looked at more often than AWS."""


@dataclass(frozen=True)
class Snapshot:
    """A saved state.

    Attributes:
        sources: the hashes of the deployed sources.
        connection: the content of `local.json`.
    """

    sources: Sources
    connection: LocalConnection

    @classmethod
    def read(cls, folder: StateFolder) -> Snapshot | None:
        """Return the snapshot of a folder; None if there is none, or if another version wrote it."""
        try:
            content = json.loads(_record(folder).read_text())
            return cls(Sources(**content["sources"]), LocalConnection(**content["connection"]))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def fits(self, sources: Sources, servers: Servers | None) -> bool:
        """Whether a cloud with these sources may start with it; other code of handlers and jobs is replaced afterwards."""
        is_same_address = servers is not None and servers.endpoint == self.connection.endpoint_url
        return is_same_address and sources.templates == self.sources.templates


def take_snapshot(folder: StateFolder, servers: Servers, snapshot: Snapshot) -> None:
    """Save the state of a running cloud.

    Raises:
        LocalCloudError: MiniStack cannot save it.
    """
    request = urllib.request.Request(
        servers.endpoint + SNAPSHOT_PATH, method="POST", headers={SECRET_HEADER: read_secret(folder.secret)}
    )
    try:
        with LOOPBACK_OPENER.open(request, timeout=_SECONDS):
            pass
    except (urllib.error.URLError, TimeoutError) as error:
        raise LocalCloudError(
            f"the state of the cloud cannot be saved ({error}); see {folder.logs / 'ministack.log'}"
        ) from error
    # The record makes the snapshot valid, so it comes last.
    write_private(_record(folder), json.dumps(asdict(snapshot)))


def discard_snapshot(folder: StateFolder) -> None:
    """Remove the snapshot of a folder."""
    shutil.rmtree(folder.snapshot, ignore_errors=True)


def _record(folder: StateFolder) -> Path:
    return folder.snapshot / "made-of.json"


# The commands must not use the developer's own AWS configuration.
_REMOVED_VARIABLES = re.compile(r"AWS_|CDK_", re.IGNORECASE)


@dataclass(frozen=True)
class Cdk:
    """The `cdk` command for one state folder."""

    folder: StateFolder
    tools: CdkTools

    def bootstrap(self, servers: Servers, deployer: AccessKey) -> None:
        """Bootstrap the local account."""
        arguments = ["bootstrap", f"aws://{ACCOUNT_ID}/{REGION}", "--app", "", "--output", str(self.folder.cdk_home)]
        self._run("bootstrap", arguments, _aws(servers, deployer))

    def deploy(self, servers: Servers, deployer: AccessKey) -> dict[str, dict[str, str]]:
        """Deploy the templates; return the outputs by stack."""
        arguments = ["deploy", "--all", "--app", str(self.folder.cdk_out), "--outputs-file", str(self.folder.outputs)]
        arguments += ["--require-approval", "never", "--method", "direct", "--concurrency", "4"]
        arguments += ["--asset-parallelism", "--progress", "events"]
        self._run("deploy", arguments, _aws(servers, deployer))
        outputs: dict[str, dict[str, str]] = json.loads(self.folder.outputs.read_text())
        return outputs

    def _run(self, name: str, arguments: list[str], environment: dict[str, str]) -> None:
        log = self.folder.logs / f"cdk-{name}.log"
        command = [self.tools.cdk, *arguments, "--no-notices", "--no-color"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=FILES,
                env={**self._environment(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait()
            except BaseException:
                _kill_tree(process)
                raise
        if code:
            raise LocalCloudError(f"`cdk {name}` failed; see its output in {log}", tail(log))

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not _REMOVED_VARIABLES.match(name)}
        return {
            **inherited,
            **NODE_VARIABLES,
            "PATH": self.tools.path,
            "CDK_HOME": str(self.folder.cdk_home),
            "NODE_OPTIONS": " ".join(filter(None, (inherited.get("NODE_OPTIONS"), f'--require "{SHORT_WAITS}"'))),
            "CDK_DISABLE_CLI_TELEMETRY": "1",
            "CDK_DISABLE_VERSION_CHECK": "1",
            "TMPDIR": str(self.folder.temporary),
            # The commands read no profile of the developer and use no other endpoint.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            **unproxied(inherited),
            MARK: str(self.folder.root),
        }

    def functions_allowed_to_recurse(self) -> list[str]:
        """Return the names of the functions with `RecursiveLoop: Allow` in their template."""
        functions = []
        for template in sorted(self.folder.cdk_out.glob("*.template.json")):
            resources: dict[str, Any] = json.loads(template.read_text()).get("Resources", {})
            for resource in resources.values():
                properties = resource.get("Properties", {})
                if resource.get("Type") == "AWS::Lambda::Function" and properties.get("RecursiveLoop") == "Allow":
                    functions.append(str(properties["FunctionName"]))
        return functions


def _aws(servers: Servers, key: AccessKey) -> dict[str, str]:
    return {**key.environment(), "AWS_ENDPOINT_URL": servers.endpoint, "AWS_ENDPOINT_URL_S3": servers.endpoint}


def _kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill a command with its children: the CDK app and Node."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        children = []
    process.kill()
    for child in children:
        if child.is_running():
            child.kill()
    process.wait()
