"""`asya cost` prints what a mesh costs, with the arithmetic."""

import json
from pathlib import Path
from typing import Any

import pytest

from asya_cli.deployment import Choice
from tests.doubles.command_line import asya


@pytest.fixture
def synthesized(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A synthesis writes a mesh with a key and a dashboard."""
    template = {"Resources": {"key": {"Type": "AWS::KMS::Key"}, "board": {"Type": "AWS::CloudWatch::Dashboard"}}}

    def write(choice: Choice) -> None:
        choice.folder.mkdir()
        artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "state.json"}}
        manifest = {"artifacts": {"Asya-shop-state": artifact}}
        (choice.folder / "manifest.json").write_text(json.dumps(manifest))
        (choice.folder / "state.json").write_text(json.dumps(template))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Choice, "synthesize", write)


@pytest.mark.usefixtures("synthesized")
def test_the_parts_and_the_sum_of_an_idle_mesh() -> None:
    outcome = asya("cost", "--idle")
    assert [" ".join(line.split()) for line in outcome.stdout.splitlines()] == [
        "asya-shop: list prices of us-east-1, November 2026, without free tiers",
        "1 stack, 2 resources, 0 functions, 0 queues",
        "",
        "a month without an envelope calculation price $",
        "Dashboards 1 $3.00 per dashboard and month 3.000",
        "Keys 1 $1.00 per key and month 1.000",
        "together 4.00",
    ]


@pytest.mark.usefixtures("synthesized")
def test_the_json_has_hops_and_tasks_too() -> None:
    costs: dict[str, Any] = json.loads(asya("cost", "--json").stdout)
    assert (costs["namespace"], costs["idle"]["dollars"]) == ("shop", 4.0)
    assert [each["of"] for each in costs["calls"]] == [
        f"a million {what}, {load}"
        for what in ("hops", "hops without reports", "tasks", "tasks without an object")
        for load in ("batches of ten", "single envelopes")
    ]
    for each in costs["calls"]:
        assert each["dollars"] == pytest.approx(sum(part["dollars"] for part in each["parts"]), abs=0.01)
