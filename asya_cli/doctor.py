"""`asya doctor`: checks an account before a deployment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asya_cli.errors import CommandError
from asya_cli.mesh_file.loading import load_with_types
from asya_cli.options import DEFAULT_MESH, JsonLines, MeshFile, Profile
from asya_cli.output.text import echo, styled, visible, write_json_line
from asya_cli.synthesis import synthesize

if TYPE_CHECKING:
    from asya_infra.preflight.checks import Finding

_DEFAULT_REGION = "us-east-1"  # that of `cdk` without a region
_COLORS = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(
    mesh: MeshFile = DEFAULT_MESH,
    *,
    stage: Annotated[str, typer.Option("--stage", help="The stage to deploy.")] = "",
    synthesized: Annotated[
        Path | None,
        typer.Option(
            "--synthesized",
            help="Read this output folder of `cdk synth`, instead of synthesizing the mesh.",
            metavar="DIR",
        ),
    ] = None,
    as_json: JsonLines = False,
    region: Annotated[
        str | None,
        typer.Option("--region", help="AWS region; by default that of the stage, or of your AWS configuration."),
    ] = None,
    profile: Profile = None,
) -> None:
    """Check before a deployment that the AWS account can hold the mesh. Changes nothing.

    Checks credentials, `cdk bootstrap`, the stacks, names that are taken, the quotas of Lambda, SQS, EMR Serverless and
    IAM, and the KMS key of the mesh file.

    What you may not read is a warning. Exit code 1 if there is a problem.
    """
    findings = _examine(_assembly(synthesized, mesh, stage), region, profile)
    for finding in findings:
        if as_json:
            write_json_line(finding)
        else:
            typer.echo(line(finding))  # noqa: TID251 - colored, and visible but for that
    problems = sum(finding.level == "problem" for finding in findings)
    if problems:
        echo(f"{problems} {'problem' if problems == 1 else 'problems'}: the deployment would fail", err=True)
        raise typer.Exit(1)


def line(finding: Finding) -> str:
    """Return the line of a finding."""
    return (
        f"{styled(f'{finding.level:<8}', _COLORS[finding.level])} {visible(f'{finding.subject:<20} {finding.message}')}"
    )


def _examine(folder: Path, region: str | None, profile: str | None) -> list[Finding]:
    from asya_infra.assembly import AssemblyError, read_assembly
    from asya_infra.preflight.account import Unknown
    from asya_infra.preflight.checks import Finding, check
    from asya_infra.preflight.demand import demand_of
    from asya_infra.preflight.read_account import read_account, read_identity

    try:
        demand = demand_of(read_assembly(folder))
    except AssemblyError as error:
        raise CommandError(str(error), "Run `cdk synth` first, or leave out --synthesized.") from error
    session = session_in(region or demand.region, profile)
    identity = read_identity(session)
    if isinstance(identity, Unknown):
        message = f"no valid AWS credentials ({identity.reason}); configure them as for the AWS CLI"
        return [Finding("problem", "credentials", message)]
    return check(demand, read_account(session, demand, identity))


def session_in(region: str | None, profile: str | None = None) -> Any:
    """Return a session in this region, or else where `asya deploy` would deploy.

    Raises:
        CommandError: The AWS configuration cannot be used.
    """
    from boto3.session import Session
    from botocore.exceptions import BotoCoreError

    try:
        chosen = region or Session(profile_name=profile).region_name or _DEFAULT_REGION
        return Session(region_name=chosen, profile_name=profile)
    except BotoCoreError as error:  # such as an unknown profile
        raise CommandError(f"cannot use the AWS configuration: {error}", "Check --profile and AWS_PROFILE.") from error


def _assembly(synthesized: Path | None, mesh: Path, stage: str) -> Path:
    """Return the folder with the templates."""
    return synthesized or synthesize(load_with_types(mesh, stage), stage).folder
