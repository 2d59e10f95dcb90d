"""The mesh and the account that the options of a command choose, and what is done to them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya_cli import clock
from asya_cli.deployment.cdk import Cdk
from asya_cli.doctor import session_in
from asya_cli.errors import CommandError, ExitCode
from asya_cli.mesh_file.loading import check_exists
from asya_cli.output.text import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from boto3.session import Session

    from asya_infra.deployment.commands import Deployment
    from asya_infra.mesh_file.source import Location


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

    def synthesized(self) -> Cdk:
        """Write the templates, and return the tool that deploys them.

        Raises:
            CommandError: The mesh file is missing or invalid, or AWS would refuse the mesh.
        """
        check_exists(self.mesh)
        cdk = Cdk.find(self.profile, self.region)
        stage = (f"stage={self.stage}",) if self.stage else ()
        cdk.synthesize(self.folder, (f"mesh={self.mesh.resolve()}", *stage, *self.context))
        return cdk

    def run(self, arguments: Sequence[str]) -> None:
        """Run the CDK's own tool on the synthesized mesh.

        Raises:
            CommandError: The tool fails; its output is printed.
        """
        if code := self.synthesized().run([*arguments, "--app", str(self.folder)]):
            raise CommandError(f"`cdk {arguments[0]}` failed with exit code {code}; its output is above")

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
        cdk = self.synthesized()
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
            advice = "Check your AWS credentials, --profile and --region."
            raise CommandError(f"a call of AWS failed: {error}", advice, ExitCode.UNREACHABLE) from error

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
