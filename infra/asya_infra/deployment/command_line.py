"""The command lines of `python -m asya_infra.deploy` and `python -m asya_infra.destroy`."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from asya_infra.assembly import read_assembly
from asya_infra.deployment.commands import Deployment, DeploymentError
from asya_infra.deployment.contract_changes import Locate, by_key
from asya_infra.mesh_file import MeshFileError, load_mesh
from asya_infra.mesh_file.source import Location
from asya_infra.options import OptionError, read_options
from asya_infra.repository import REPOSITORY

_DEFAULT_REGION = "us-east-1"  # that of `cdk` without a region


def run(name: str, arguments: Sequence[str], action: Callable[[Deployment], None]) -> None:
    """Synthesize the mesh and run an action on it.

    Args:
        name: the name of the module.
        arguments: the command line.
        action: deploys or destroys.
    """
    options = _parser(name).parse_args(arguments)
    context = [word for pair in options.context for word in ("--context", pair)]
    folder = REPOSITORY / "cdk.out"
    if code := _cdk(["synth", "--quiet", "--output", str(folder), *context]):
        sys.exit(code)
    is_terminal = sys.stdin.isatty()
    if not is_terminal and not options.yes:
        _tell("no terminal: changes of permissions and types are deployed without a question")
    assembly = read_assembly(folder)
    region = assembly.region or boto3.Session().region_name or _DEFAULT_REGION
    deployment = Deployment(
        session=boto3.Session(region_name=region),
        assembly=assembly,
        cdk=_cdk,
        tell=_tell,
        sleep=time.sleep,
        asks=is_terminal and not options.yes,
        waits=not options.no_wait,
        dropped=tuple(options.drop_messages),
        locate=_locate(options.context),
        confirm=_confirm,
    )
    try:
        action(deployment)
    except DeploymentError as error:
        sys.exit(str(error))
    except (BotoCoreError, ClientError) as error:
        sys.exit(f"a call of AWS failed: {error}")


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {name}")
    parser.add_argument(
        "-c", "--context", action="append", default=[], metavar="KEY=VALUE", help="an option of the mesh"
    )
    parser.add_argument(
        "-y", "--yes", action="store_true", help="ask nothing; without a terminal nothing is asked either"
    )
    parser.add_argument(
        "--no-wait",
        action="store_true",
        help="if the Spark application changes while job runs are active, name them and end, instead of waiting for them",
    )
    parser.add_argument(
        "--drop-messages",
        action="append",
        default=[],
        metavar="ACTOR",
        help="delete the queue of this removed actor with its messages, or leave the backlog of one that becomes light",
    )
    return parser


def _cdk(arguments: Sequence[str]) -> int:
    command = [str(REPOSITORY / "node_modules" / ".bin" / "cdk"), *arguments]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # Node.js is beside Python
    return subprocess.run(command, check=False, cwd=REPOSITORY, env={**os.environ, "PATH": path}).returncode


def _locate(context: Sequence[str]) -> Locate:
    """Return what finds the line in the mesh file of the context."""

    def locate(place: Location, text: str) -> str:
        configuration = REPOSITORY / "cdk.json"
        values = json.loads(configuration.read_text(encoding="utf-8"))["context"] if configuration.exists() else {}
        values |= dict(pair.split("=", 1) for pair in context if "=" in pair)
        try:
            options = read_options(values.get, REPOSITORY)
            return str(load_mesh(options.mesh, options.stage).source.problem(place, text))
        except (MeshFileError, OptionError):  # the context came from elsewhere, such as ~/.cdk.json
            return by_key(place, text)

    return locate


def _confirm(question: str) -> bool:
    try:
        return input(f"asya: {question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def _tell(text: str) -> None:
    print(f"asya: {text}", flush=True)
