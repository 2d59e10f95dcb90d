"""`asya validate`, `asya graph` and `asya schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from asya_cli import synthesis
from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_local.errors import LocalCloudError

MESH = """\
namespace: shop
code: handlers
jobs: jobs
defaults:
  resiliency:
    policies: {repair: {max_attempts: 2, then_route: [mend, check]}}
actors:
  check: {handler: orders.check, can_send_to: [bill]}
  bill: {spark: {job: bills.bill}}
  mend: {handler: orders.mend, resiliency: {policies: {}}}
  ask: {kind: pause}
tools:
  check:
    description: Checks and bills an order
    route: [check, ask, bill, x-fan-in]
"""
HANDLERS = """\
from dataclasses import dataclass

@dataclass
class Order:
    id: str
    total: int

def check(order: Order) -> Order:
    return order

def mend(payload):
    return payload
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for folder, name, text in (
        ("handlers", "orders", HANDLERS),
        ("jobs", "bills", "def bill(spark, payload):\n    return payload\n"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").write_text(text)
    (tmp_path / "mesh.yaml").write_text(MESH)
    return tmp_path / "mesh.yaml"


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_a_graph_has_the_ways_of_tools_of_actors_and_of_policies(shop: Path) -> None:
    done = run("graph", "--mesh", str(shop))
    assert done.exit_code == 0, done.exception
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[0] == "flowchart LR"
    assert sum('"' in line for line in lines) == 6  # a tool may have the name of an actor
    assert 'n0["check"]' in lines
    assert 'n1[["bill"]]' in lines
    assert 'n3{{"ask"}}' in lines
    [tool] = [line.partition(">")[0] for line in lines if line.endswith('>"check"]')]
    [merge] = [line.partition("[")[0] for line in lines if line.endswith('[/"x-fan-in"\\]')]
    for way in (f"{tool} --> n0", "n0 --> n3", "n3 --> n1", f"n1 --> {merge}", "n0 --> n1"):
        assert way in lines
    assert "n0 -.repair.-> n2" in lines
    assert "n2 -.repair.-> n0" in lines


def test_a_valid_mesh_says_what_was_checked(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("validate", "--no-limits", "--mesh", str(shop))
    assert done.exit_code == 0, done.exception
    assert done.stdout.endswith("shop with 4 actors and 1 tool: mesh file, code and types are right\n")
    assert "note: " in done.stderr
    said = ["note: the same", "beyond the default quota of an account: queues"]
    monkeypatch.setattr(synthesis, "synthesize", lambda *_: said)
    done = run("validate", "--mesh", str(shop))
    assert done.stdout.endswith("types and limits are right\n")
    assert done.stderr.splitlines()[-1] == said[1]
    assert said[0] not in done.stderr


@pytest.mark.parametrize(
    ("file", "before", "after", "problem"),
    [
        ("mesh.yaml", "handler: orders.mend", "handler: orders.mendd", "mesh.yaml:10: actors.mend.handler"),
        ("mesh.yaml", "kind: pause", "kind: paus", "mesh.yaml:11: actors.ask.kind"),
        ("handlers/orders.py", "    total: int", "    total: ", "orders.py"),
    ],
)
def test_a_mistake_is_told_with_its_line(shop: Path, file: str, before: str, after: str, problem: str) -> None:
    path = shop.parent / file
    path.write_text(path.read_text().replace(before, after))
    done = run("validate", "--no-limits", "--mesh", str(shop))
    assert isinstance(done.exception, LocalCloudError)
    assert problem in done.exception.message


def test_what_aws_would_refuse_is_an_error(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise CommandError("cannot synthesize", "AWS would refuse this mesh")

    monkeypatch.setattr(synthesis, "synthesize", refuse)
    assert isinstance(run("validate", "--mesh", str(shop)).exception, CommandError)


def test_the_schema_is_that_of_the_reference() -> None:
    assert "actors" in json.loads(run("schema").stdout)["properties"]
