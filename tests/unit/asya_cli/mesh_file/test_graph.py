"""`asya graph`: a diagram of a mesh."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from asya_cli.main import app


def test_a_graph_has_the_ways_of_tools_of_actors_and_of_policies(shop: Path) -> None:
    done = CliRunner().invoke(app, ["graph", "--mesh", str(shop)])
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
