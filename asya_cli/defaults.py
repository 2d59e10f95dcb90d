"""Gives the defaults of the options that select a mesh to the commands, so that nobody types them twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asya.client.defaults import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
