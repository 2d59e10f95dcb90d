"""The options that select a mesh, shared by the commands, and their defaults."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from asya.client.defaults import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asya.client.mesh_client import MeshClient

_COMMAND = re.compile(r"`(asya [^`]+)`")

DEFAULT_STATE = Path(".asya")
DEFAULT_MESH = Path("mesh.yaml")

MeshFile = Annotated[Path, typer.Option("--mesh", help="The mesh file.")]
Stage = Annotated[str, typer.Option("--stage", help="The stage of the mesh file.", show_default=False)]
Profile = Annotated[
    str | None, typer.Option("--profile", help="The profile of your AWS configuration, with --namespace.")
]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
JsonDocument = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
EnvelopeId = Annotated[str, typer.Argument(metavar="ID", help="The envelope's id.", show_default=False)]

OptionalId = Annotated[str | None, typer.Argument(metavar="ID", help="The envelope's id.", show_default=False)]


def completed(text: str, options: str) -> str:
    """Add the options that select the mesh to the commands in a text of the mesh itself, which does not know them."""
    return _COMMAND.sub(lambda match: f"`{match[1]}{options}`", text)


def not_empty(text: str | None) -> str | None:
    """Refuse an empty text: as a filter it would select everything, such as after a misspelled variable of a shell.

    Raises:
        BadParameter: The text is empty.
    """
    if text == "":
        raise typer.BadParameter("it is empty; leave it out to select all")
    return text


@dataclass(frozen=True)
class MeshOptions:
    """The options that select a mesh. A command with `@selects_mesh` takes them all."""

    state: Annotated[Path, typer.Option("--state", help="State folder of the local cloud to use.")] = DEFAULT_STATE
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", help="Use the mesh with this namespace on AWS instead, with your AWS credentials."),
    ] = None
    region: Annotated[str | None, typer.Option("--region", help="AWS region, with --namespace.")] = None
    profile: Profile = None

    def client(self) -> MeshClient:
        """Connect to the mesh.

        Raises:
            CommandError: There is no such mesh.
        """
        # A late import: the AWS SDK would slow down `asya --help`.
        from asya.client.connection import find_on_aws, read_local
        from asya.client.mesh_client import MeshClient

        if self.namespace:
            return MeshClient(find_on_aws(self.namespace, self.region, self.profile))
        return MeshClient(read_local(self.state))

    def as_typed(self) -> str:
        """Return the options as a user types them, with a space before.

        The default folder is named too: without it, a default namespace would select another mesh.
        """
        if self.namespace:
            given = (("--namespace", self.namespace), ("--region", self.region), ("--profile", self.profile))
            return "".join(f" {name} {quote(value)}" for name, value in given if value)
        return f" --state {quote(str(self.state))}"


def selects_mesh(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that select a mesh, in place of its keyword `selected`."""
    hints = get_type_hints(MeshOptions, include_extras=True)
    options = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
        for each in fields(MeshOptions)
    ]
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        parameters.extend(options if parameter.name == "selected" else [parameter])

    @wraps(command)
    def run(*args: Any, **given: Any) -> None:
        selected = MeshOptions(**{option.name: given.pop(option.name) for option in options if option.name in given})
        command(*args, selected=selected, **given)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


_OWN_STATE = frozenset({"demo"})
"""The commands that have a state folder of their own."""


def takes_defaults(command: Any, subcommand: str | None, arguments: Sequence[str]) -> bool:
    """Return whether a command line needs the defaults: not for help, and not for a command without these options."""
    if subcommand is None or "--help" in arguments:
        return False
    chosen = command.commands.get(subcommand)
    return hasattr(chosen, "commands") or any(each.name in OPTIONS for each in getattr(chosen, "params", ()))


def default_map(command: Any, defaults: Mapping[str, str]) -> dict[str, Any]:
    """Return the defaults as click takes them: by subcommand, and within it by option."""
    return {
        name: default_map(subcommand, defaults) if hasattr(subcommand, "commands") else dict(defaults)
        for name, subcommand in command.commands.items()
        if name not in _OWN_STATE
    }
