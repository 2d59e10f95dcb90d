"""Deploying the mesh's stacks to the local cloud, by the same `cdk` commands as to AWS."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from asya_local.errors import LocalCloudError
from asya_local.keys import ACCOUNT_ID, REGION, AccessKey
from asya_local.ports import LOOPBACK
from asya_local.state_folder import MARK, StateFolder
from asya_local.tools import PROJECT, Tools

if TYPE_CHECKING:
    from pathlib import Path

    from asya_local.servers import Servers

# Nothing of the developer's own AWS set-up may reach the commands, or be reached by them. And the CDK is large: what Python
# compiles of it is kept.
_REMOVED_VARIABLES = re.compile(r"AWS_|CDK_|JSII_|PYTHONDONTWRITEBYTECODE", re.IGNORECASE)
_TAIL_LINES = 30


@dataclass(frozen=True)
class Cdk:
    """The `cdk` command for one state folder."""

    folder: StateFolder
    tools: Tools

    def synthesize(self, mesh: Path, application_id: str) -> None:
        """Make the templates and assets of a mesh in the folder's `cdk.out`.

        Raises:
            LocalCloudError: The mesh file is refused, or the CDK fails.
        """
        context = {
            "mesh": str(mesh),
            "layer_target": "host",
            "host_python": self.tools.cloud_python,
            "emr_application_id": application_id,
        }
        # `exec` first: the command takes a text in quotes for the name of one program.
        arguments = ["synth", "--quiet", "--app", f'exec "{self.tools.python}" "{PROJECT / "app.py"}"']
        for key, value in context.items():
            arguments += ["--context", f"{key}={value}"]
        self._run("synth", [*arguments, "--output", str(self.folder.cdk_out)], {})

    def bootstrap(self, servers: Servers, deployer: AccessKey) -> None:
        """Prepare the local account for deployments, as every AWS account is prepared once."""
        arguments = ["bootstrap", f"aws://{ACCOUNT_ID}/{REGION}", "--app", "", "--output", str(self.folder.cdk_home)]
        self._run("bootstrap", arguments, _aws(servers, deployer))

    def deploy(self, servers: Servers, deployer: AccessKey) -> dict[str, dict[str, str]]:
        """Deploy what was synthesized; returns each stack's outputs."""
        arguments = ["deploy", "--all", "--app", str(self.folder.cdk_out), "--outputs-file", str(self.folder.outputs)]
        arguments += ["--require-approval", "never", "--method", "direct", "--concurrency", "4"]
        arguments += ["--asset-parallelism", "--progress", "events"]
        self._run("deploy", arguments, _aws(servers, deployer))
        found: dict[str, dict[str, str]] = json.loads(self.folder.outputs.read_text())
        return found

    def _run(self, name: str, arguments: list[str], environment: dict[str, str]) -> None:
        log = self.folder.logs / f"cdk-{name}.log"
        command = [self.tools.cdk, *arguments, "--no-notices", "--no-color"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=PROJECT,
                env={**self._environment(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait()
            except BaseException:
                _end(process)
                raise
        if code:
            raise LocalCloudError(f"`cdk {name}` failed; the whole of its output: {log}", _tail(log))

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not _REMOVED_VARIABLES.match(name)}
        return {
            **kept,
            "PATH": self.tools.path,
            "CDK_HOME": str(self.folder.cdk_home),
            "CDK_DISABLE_CLI_TELEMETRY": "1",
            "CDK_DISABLE_VERSION_CHECK": "1",
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
            "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
            "TMPDIR": str(self.folder.temporary),
            # No profile of the developer's is looked at, no endpoint but the local one can be meant.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "NO_PROXY": ",".join(filter(None, [kept.get("NO_PROXY", ""), LOOPBACK, "localhost"])),
            MARK: str(self.folder.root),
        }

    def functions_allowed_to_recurse(self) -> list[str]:
        """Names of the functions whose template says `RecursiveLoop: Allow`."""
        found = []
        for template in sorted(self.folder.cdk_out.glob("*.template.json")):
            resources: dict[str, Any] = json.loads(template.read_text()).get("Resources", {})
            for resource in resources.values():
                properties = resource.get("Properties", {})
                if resource.get("Type") == "AWS::Lambda::Function" and properties.get("RecursiveLoop") == "Allow":
                    found.append(str(properties["FunctionName"]))
        return found


def _aws(servers: Servers, key: AccessKey) -> dict[str, str]:
    return {**key.environment(), "AWS_ENDPOINT_URL": servers.endpoint, "AWS_ENDPOINT_URL_S3": servers.endpoint}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started: the CDK app, the CDK's own Node."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        children = []
    process.kill()
    for child in children:
        if child.is_running():
            child.kill()
    process.wait()


def _tail(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return "\n".join(lines[-_TAIL_LINES:])
