"""`asya deploy`, `asya diff` and `asya destroy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asya_cli.deployment.choice import Choice
from asya_cli.options import DEFAULT_MESH, MeshFile, Stage

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
    """Show what a deployment would change in the AWS account of your credentials. It changes nothing."""
    choice = Choice(mesh, stage, tuple(context or ()), output, region, profile)
    choice.check_credentials()
    choice.run(["diff"])  # of all stacks
