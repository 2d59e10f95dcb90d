"""`asya init`: makes the folder of a new mesh."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.output.text import echo


class Template(StrEnum):
    """The templates, by what they show."""

    LIGHT = "light"
    SPARK = "spark"
    APPROVAL = "approval"
    AGENT_TOOLS = "agent-tools"


_FIRST_CALLS = {
    Template.LIGHT: "asya call price-orders @samples/orders.json --wait",
    Template.SPARK: "asya call sales @samples/orders.json --wait",
    Template.APPROVAL: "asya call refund @samples/refund.json --wait",
    Template.AGENT_TOOLS: "asya call find-products @samples/lamps.json --wait",
}


def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the mesh and of its folder.", show_default=False)
    ],
    *,
    template: Annotated[
        Template,
        typer.Option(
            "--template",
            help="light: functions; spark: a Spark job, too; approval: waits for an answer; agent-tools: tools for models.",
        ),
    ] = Template.LIGHT,
) -> None:
    """Make the folder of a new mesh: mesh file, actors, tests, a sample input, a workflow for GitHub Actions and a README.

    `asya dev` in the new folder runs the mesh. `asya new` adds actors and tools.
    """
    from importlib.metadata import version

    from asya_cli.scaffold.files import make_folder, project_files
    from asya_cli.scaffold.naming import InvalidNameError, check_namespace

    try:
        folder = Path(check_namespace(name))
    except InvalidNameError as error:
        raise CommandError(str(error), error.hint) from error
    another = f"Choose another name, such as: asya init {name[:55]}-mesh"
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise CommandError(f"{folder} exists already; nothing was changed", another)
    try:
        make_folder(folder, project_files(template.value, name, version("asya-mesh")))
    except OSError as error:
        raise CommandError(f"cannot make the folder {folder}: {error.strerror}", "Nothing was left behind.") from error
    echo(str(folder))
    echo(
        f"made {folder}, a mesh from the template {template.value}; its README says how to test and deploy it", err=True
    )
    echo(f"Now type:\n  cd {folder}\n  asya dev\nand in a second terminal:\n  {_FIRST_CALLS[template]}", err=True)
