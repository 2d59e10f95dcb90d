"""The subcommands of capabilities that the mesh file of this folder names."""

from __future__ import annotations

import pkgutil
import sys
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from asya_cli.errors import CommandError
from asya_cli.mesh_file.loading import own_capabilities
from asya_cli.options import DEFAULT_MESH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asya.manifest import Command


class WithOwnCommands(TyperGroup):
    """The commands of the product, and after them those of the mesh in this folder."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None for an unknown one."""
        command = super().get_command(ctx, cmd_name)
        if command is None and (own := _declared(self.commands).get(cmd_name)) is not None:
            return _imported(own)
        return command

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *_declared(self.commands)]


def _declared(taken: Iterable[str]) -> dict[str, Command]:
    """Return the commands of the mesh in this folder by name.

    Args:
        taken: The names of the commands of the product.

    Raises:
        CommandError: The mesh file cannot be read, or a manifest is wrong.
    """
    named = own_capabilities(DEFAULT_MESH)
    if named is None:
        return {}
    commands = {each.name: each for capability in named.registry.capabilities for each in capability.commands}
    if again := sorted(commands.keys() & {*taken}):
        raise CommandError(f"`asya {again[0]}` is a command already; rename that of the capability")
    sys.path.append(str(named.code))
    return commands


def _imported(command: Command) -> Any:
    found = pkgutil.resolve_name(command.entry_point)
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(command.name)(found)
        found = app
    return typer.main.get_command(found)
