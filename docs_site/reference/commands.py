"""The page of all commands of `asya` with their arguments and options, from the command itself."""

import inspect
from collections.abc import Iterator
from typing import Any

import typer.main

from asya_cli.main import app
from docs_site.reference.tables import code, table

INTRODUCTION = """\
# Commands and options

Every command of `asya` as `--help` shows it. [The asya command](../command.md) says how a command selects a mesh and
tasks, what it prints where, and what its exit codes tell.
"""


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command with its words, such as `asya dlq list`; hidden commands are left out."""
    yield from _below(typer.main.get_command(app), "asya")


def _below(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, child in command.commands.items():
        if not child.hidden:
            yield from _below(child, f"{words} {name}")


def page() -> str:
    """Write the page."""
    lines = [INTRODUCTION]
    for words, command in commands():
        lines += _section(words, command)
    return "\n".join(lines)


def _section(words: str, command: Any) -> list[str]:
    context = typer.Context(command, info_name=words)
    lines = [f"## {words}", "", _text(command.help or ""), "", "```text", command.get_usage(context), "```", ""]
    rows = [_parameter(each, context) for each in command.params if not getattr(each, "hidden", False)]
    return lines + table(("argument or option", "value", "default", "meaning"), rows) if rows else lines


def _parameter(parameter: Any, context: Any) -> tuple[str, str, str, str]:
    if parameter.param_type_name == "argument":
        names, value = code(parameter.name.upper()), "required" if parameter.required else "optional"
    else:
        names = ", ".join(code(name) for name in (*parameter.opts, *parameter.secondary_opts))
        value = "" if parameter.is_flag else code(parameter.metavar or parameter.display_type(context))
    default = parameter.get_default(context, call=False)
    shown = "" if default in (None, False, "", [], ()) or callable(default) else code(default)
    return names, value, shown, _text(parameter.help or "")


def _text(text: str) -> str:
    """Help as prose: without the marks that keep line breaks, and without Rich's escapes of brackets."""
    return inspect.cleandoc(text.replace("\b", "").replace("\\[", "[")).replace("<", "&lt;")
