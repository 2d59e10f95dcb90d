"""`asya deploy`, `asya diff` and `asya destroy`: a mesh on AWS, through the CDK.

The options of a command choose the mesh and the account.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli import clock
from asya_cli.doctor import session_in
from asya_cli.errors import CommandError, ExitCode
from asya_cli.mesh_file.loading import check_exists, load_with_types
from asya_cli.options import DEFAULT_MESH, MeshFile, Stage
from asya_cli.output.text import echo
from asya_infra.node import NODE_VARIABLES
from asya_infra.product.app import cdk_tool, node_path
from asya_infra.product.environments import EnvironmentsError
from asya_infra.product.places import FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boto3.session import Session

    from asya_infra.deployment.commands import Deployment
    from asya_infra.mesh_file.source import Location

_CREDENTIALS = "Check your AWS credentials, --profile and --region."


@dataclass(frozen=True)
class Cdk:
    """Runs `cdk` with the credentials that the user selects.

    Attributes:
        tool: the program.
        path: PATH with its Node.js first.
        profile: the profile of the AWS configuration; None for that of the environment.
        region: the region; None for that of the profile or the environment.
    """

    tool: Path
    path: str
    profile: str | None = None
    region: str | None = None

    @classmethod
    def find(cls, profile: str | None, region: str | None) -> Cdk:
        """Find the tool. An installed package installs it once.

        Raises:
            CommandError: It is missing, or cannot be installed.
        """
        try:
            return cls(cdk_tool(), node_path(), profile, region)
        except EnvironmentsError as error:
            raise CommandError("the CDK is missing, which deploys a mesh", str(error)) from error

    def run(self, arguments: Sequence[str]) -> int:
        """Run the tool at the user's terminal, and return its exit code."""
        profile = ["--profile", self.profile] if self.profile else []
        region = {"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region} if self.region else {}
        return subprocess.run(
            [str(self.tool), *arguments, *profile, "--no-notices"],
            check=False,
            cwd=FILES,  # where `cdk.json` is
            env={**os.environ, **NODE_VARIABLES, **region, "PATH": self.path},
        ).returncode


@dataclass(frozen=True)
class Choice:
    """What the options of a command choose.

    Attributes:
        mesh: the mesh file.
        stage: its stage; empty for the mesh file without a stage.
        context: further options of the stacks, such as `relist=1`.
        output: the folder for the templates and assets.
        region: the region; None for that of the profile or the environment.
        profile: the profile of the AWS configuration; None for that of the environment.
    """

    mesh: Path
    stage: str
    context: tuple[str, ...]
    output: Path
    region: str | None
    profile: str | None

    @property
    def folder(self) -> Path:
        """The absolute path of the output."""
        return self.output.resolve()

    def synthesize(self) -> None:
        """Write the templates and assets, and print notes and exceeded quotas.

        Raises:
            CommandError: The mesh file is missing or invalid, or AWS would refuse the mesh.
        """
        from asya_cli.synthesis import synthesize
        from asya_infra.notes import notes

        loaded = load_with_types(self.mesh, self.stage)
        synthesized = synthesize(loaded, self.stage, self.context)
        for line in (*(f"note: {note}" for note in notes(loaded)), *synthesized.findings.quotas):
            echo(line, err=True)
        synthesized.copy_to(self.folder)

    def run(self, arguments: Sequence[str]) -> None:
        """Run the CDK's own tool on the synthesized mesh.

        Raises:
            CommandError: The tool fails; its output is printed.
        """
        cdk = Cdk.find(self.profile, self.region)
        self.synthesize()
        if code := cdk.run([*arguments, "--app", str(self.folder)]):
            raise CommandError(f"`cdk {arguments[0]}` failed with exit code {code}; its output is above")

    def tell_costs(self) -> None:
        """Print what the synthesized mesh costs more or less than the deployed one.

        Raises:
            CommandError: A call of AWS failed.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        from asya_infra.assembly import read_assembly
        from asya_infra.costs.model import change
        from asya_infra.deployment.deployed_templates import deployed_templates

        assembly = read_assembly(self.folder)
        try:
            session = session_in(assembly.region or self.region, self.profile)
            deployed = deployed_templates(session, sorted({*assembly.templates, *assembly.absent_stacks}))
        except (BotoCoreError, ClientError) as error:
            raise CommandError(f"a call of AWS failed: {error}", _CREDENTIALS, ExitCode.UNREACHABLE) from error
        echo(change(deployed, assembly.templates))

    def check_credentials(self) -> None:
        """Check that there are credentials, before the templates are made.

        Raises:
            CommandError: The mesh file is missing, or there are no credentials.
        """
        check_exists(self.mesh)
        if session_in(self.region, self.profile).get_credentials() is None:
            advice = "Log in as for the AWS CLI, or give --profile NAME."
            raise CommandError("there are no AWS credentials", advice, ExitCode.UNREACHABLE)

    def act(
        self,
        action: Callable[[Deployment], None],
        *,
        yes: bool,
        waits: bool,
        dropped: tuple[str, ...] = (),
        bootstrap: bool = False,
    ) -> None:
        """Synthesize the mesh and deploy or destroy it.

        Args:
            action: deploys or destroys.
            yes: whether to ask nothing.
            waits: whether to wait for active job runs.
            dropped: removed actors whose messages may be deleted.
            bootstrap: whether to prepare the account and region for the CDK first.

        Raises:
            CommandError: The deployment is refused or failed, or a call of AWS failed.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        from asya_infra.assembly import read_assembly
        from asya_infra.deployment.commands import Deployment, DeploymentError

        self.check_credentials()
        cdk = Cdk.find(self.profile, self.region)
        self.synthesize()
        is_terminal = sys.stdin.isatty()
        if not is_terminal and not yes:
            _tell("no terminal, so nothing is asked")
        assembly = read_assembly(self.folder)
        try:
            session = session_in(assembly.region or self.region, self.profile)
            if bootstrap:
                _bootstrap(cdk, session)
            deployment = Deployment(
                session=session,
                assembly=assembly,
                cdk=cdk.run,
                tell=_tell,
                sleep=clock.sleep,
                asks=is_terminal and not yes,
                waits=waits,
                dropped=dropped,
                locate=self._line_of,
                confirm=_confirm,
            )
            action(deployment)
        except DeploymentError as error:
            raise CommandError(str(error)) from error
        except (BotoCoreError, ClientError) as error:
            raise CommandError(f"a call of AWS failed: {error}", _CREDENTIALS, ExitCode.UNREACHABLE) from error

    def _line_of(self, place: Location, text: str) -> str:
        """Return a finding with the line of the mesh file."""
        from asya_infra.mesh_file import load_mesh

        return str(load_mesh(self.mesh, self.stage).source.problem(place, text))


def _bootstrap(cdk: Cdk, session: Session) -> None:
    account = session.client("sts").get_caller_identity()["Account"]
    if code := cdk.run(["bootstrap", f"aws://{account}/{session.region_name}", "--app", ""]):
        raise CommandError(f"`cdk bootstrap` failed with exit code {code}; its output is above")


def _confirm(question: str) -> bool:
    try:
        return input(f"asya: {question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def _tell(text: str) -> None:
    echo(f"asya: {text}")


Context = Annotated[
    list[str] | None,
    typer.Option("--context", "-c", metavar="KEY=VALUE", help="A further option of the stacks.", show_default=False),
]
Output = Annotated[Path, typer.Option("--output", help="Folder for the templates and assets.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; without a terminal nothing is asked either.")]
NoWait = Annotated[
    bool,
    typer.Option(
        "--no-wait",
        help="If the Spark application changes while job runs are active, name them and end, instead of waiting for them.",
    ),
]
Region = Annotated[str | None, typer.Option("--region", help="AWS region.")]
Profile = Annotated[str | None, typer.Option("--profile", help="The profile of your AWS configuration.")]
_OUTPUT = Path("cdk.out")


def deploy(
    mesh: MeshFile = DEFAULT_MESH,
    stage: Stage = "",
    *,
    yes: Yes = False,
    no_wait: NoWait = False,
    drop_messages: Annotated[
        list[str] | None,
        typer.Option(
            "--drop-messages",
            metavar="ACTOR",
            help="Delete the queue of this removed actor with its messages, or leave the backlog of one that becomes light.",
            show_default=False,
        ),
    ] = None,
    bootstrap: Annotated[
        bool,
        typer.Option("--bootstrap", help="First prepare the account and region for the CDK, which is needed once."),
    ] = False,
    context: Context = None,
    output: Output = _OUTPUT,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Deploy a mesh to the AWS account of your credentials.

    Nothing is deleted that still has messages, and a Spark application that changes is stopped before, when its runs have ended.
    """
    from asya_infra.deployment.commands import Deployment

    choice = Choice(mesh, stage, tuple(context or ()), output, region, profile)
    choice.act(Deployment.deploy, yes=yes, waits=not no_wait, dropped=tuple(drop_messages or ()), bootstrap=bootstrap)


def destroy(
    mesh: MeshFile = DEFAULT_MESH,
    stage: Stage = "",
    *,
    yes: Yes = False,
    no_wait: NoWait = False,
    context: Context = None,
    output: Output = _OUTPUT,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Remove a mesh from the AWS account of your credentials. What it retains stays: see its mesh file."""
    from asya_infra.deployment.commands import Deployment

    choice = Choice(mesh, stage, tuple(context or ()), output, region, profile)
    choice.act(Deployment.destroy, yes=yes, waits=not no_wait)


def cdk(
    arguments: Annotated[
        list[str], typer.Argument(metavar="ARGUMENTS", help="Those of `cdk`, such as: import Asya-shop-state.")
    ],
    mesh: MeshFile = DEFAULT_MESH,
    stage: Stage = "",
    *,
    context: Context = None,
    output: Output = _OUTPUT,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Run the CDK's own tool on the stacks of a mesh, for what the other commands have no option for.

    Options of the tool come after `--`, as in: asya cdk --stage dev -- import Asya-shop-dev-state --force
    """
    Choice(mesh, stage, tuple(context or ()), output, region, profile).run(arguments)


def diff(
    mesh: MeshFile = DEFAULT_MESH,
    stage: Stage = "",
    *,
    context: Context = None,
    output: Output = _OUTPUT,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Show what a deployment would change in the AWS account of your credentials, and in its costs. It changes nothing."""
    choice = Choice(mesh, stage, tuple(context or ()), output, region, profile)
    choice.check_credentials()
    choice.run(["diff"])  # of all stacks
    choice.tell_costs()
