"""`asya validate`: what a deployment would refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from asya_cli import synthesis
from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_infra.assemblies import Synthesized
from asya_infra.assembly import Findings


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def problems(done: Any) -> list[Any]:
    return list(json.loads(done.stdout)["problems"])


@pytest.mark.slow
def test_a_valid_mesh_says_what_was_checked(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("validate", "--no-limits", "--mesh", str(shop))
    assert done.exit_code == 0, done.exception
    assert done.stdout.endswith("shop with 4 actors and 1 tool: mesh file, code and types are right\n")
    assert "note: " in done.stderr
    said = "beyond the default quota of an account: queues"
    monkeypatch.setattr(synthesis, "synthesize", lambda *_: Synthesized(shop.parent, Findings((said,))))
    done = run("validate", "--mesh", str(shop))
    assert done.stdout.endswith("types and limits are right\n")
    assert done.stderr.splitlines()[-1] == said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "before", "after", "problem"),
    [
        ("mesh.yaml", "handler: orders.mend", "handler: orders.mendd", "mesh.yaml:10: actors.mend.handler"),
        ("mesh.yaml", "kind: pause", "kind: paus", "mesh.yaml:11: actors.ask.kind"),
        ("handlers/orders.py", "    total: int", "    total: ", "orders.py"),
        ("handlers/orders.py", "def mend", "import nowhere\ndef mend", "mesh.yaml:10: actors.mend.handler"),
    ],
)
def test_a_mistake_is_told_with_its_line(shop: Path, file: str, before: str, after: str, problem: str) -> None:
    path = shop.parent / file
    path.write_text(path.read_text().replace(before, after))
    done = run("validate", "--no-limits", "--mesh", str(shop))
    assert isinstance(done.exception, CommandError)
    assert problem in done.exception.problem
    done = run("validate", "--no-limits", "--json", "--mesh", str(shop))
    assert done.exit_code == 1
    assert any(
        problem in f"{each['file']}:{each['line']}: {each['where']}: {each['message']}" for each in problems(done)
    )


def test_what_aws_would_refuse_is_an_error(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise CommandError("cannot synthesize", "AWS would refuse this mesh")

    monkeypatch.setattr(synthesis, "synthesize", refuse)
    assert isinstance(run("validate", "--mesh", str(shop)).exception, CommandError)
