"""The options that select a mesh."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from asya_cli.main import app
from asya_cli.options import MeshOptions, selects_mesh

_SELECTING = ("state", "namespace", "region", "profile")


@pytest.mark.parametrize(
    ("typed", "selected"),
    [
        ([], MeshOptions()),
        (["--state", "there"], MeshOptions(Path("there"))),
        (["--namespace", "shop", "--region", "r"], MeshOptions(namespace="shop", region="r")),
        (["--profile", "admin", "--namespace", "shop"], MeshOptions(namespace="shop", profile="admin")),
    ],
)
def test_a_command_gets_the_options_of_its_mesh_as_one_value(typed: list[str], selected: MeshOptions) -> None:
    seen: list[tuple[str, MeshOptions, int]] = []
    small = typer.Typer()

    @small.command()
    @selects_mesh
    def show(name: str, *, selected: MeshOptions, limit: int = 3) -> None:
        """Show it."""
        seen.append((name, selected, limit))

    assert list(inspect.signature(show).parameters) == ["name", *_SELECTING, "limit"]
    result = CliRunner().invoke(small, ["a", "--limit", "2", *typed])
    assert (result.exit_code, seen) == (0, [("a", selected, 2)])


def test_no_command_declares_one_of_these_options_itself() -> None:
    declared = {}

    def visit(path: str, command: object) -> None:
        for name, subcommand in getattr(command, "commands", {}).items():
            visit(f"{path} {name}", subcommand)
        options = tuple(each.name for each in getattr(command, "params", ()) if each.name in _SELECTING)
        if "namespace" in options:
            declared[path] = options

    visit("asya", get_command(app))
    assert set(declared.values()) == {_SELECTING}
    sources = [
        path for path in Path(__file__).parents[3].joinpath("asya_cli").rglob("*.py") if path.name != "options.py"
    ]
    assert [path.name for path in sources if 'typer.Option("--namespace"' in path.read_text()] == []
