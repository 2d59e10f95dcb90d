"""`--json` is an option of every command that prints facts, and `NO_COLOR` turns colors off everywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from asya_cli.output.console import Console
from asya_cli.output.text import styled
from tests.doubles.command_line import asya
from tests.unit.asya_cli.snapshots import commands

TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
WITHOUT_JSON = {
    "asya init": "says what it wrote",
    "asya new actor": "says what it wrote",
    "asya new spark-actor": "says what it wrote",
    "asya new tool": "says what it wrote",
    "asya cdk": "shows what the CDK prints",
    "asya demo": "shows a demonstration",
    "asya dev": "prints what happens in a mesh until Ctrl-C",
    "asya send": "prints an id, or the payload of the result, which is JSON",
    "asya call": "prints an id, or the payload of the result, which is JSON",
    "asya result": "prints the stored envelope, which is JSON",
    "asya graph": "prints a picture",
    "asya schema": "prints a schema, which is JSON",
    "asya deploy": "shows the progress of the CDK",
    "asya diff": "prints the differences as the CDK does",
    "asya destroy": "shows the progress of the CDK",
    "asya data get": "prints a file",
    "asya data put": "prints a URI",
    "asya dlq show": "prints a message, which is JSON",
    "asya job logs": "prints the lines of Spark",
    "asya job cancel": "says what it did; `asya job show --json` has the state",
    "asya job drain": "says what it did; `asya job list` has the state",
    "asya job undrain": "says what it did; `asya job list` has the state",
    "asya local up": "shows the progress of a start",
    "asya local down": "shows the progress of an end",
    "asya ui": "serves a page",
    "asya local env": "prints commands of the shell; `local.json` has the same values",
}
"""The commands without `--json`, each with the reason."""


def test_every_command_that_prints_facts_has_json() -> None:
    leaves = {path: command for path, command in commands() if not hasattr(command, "commands")}
    without = {path for path, command in leaves.items() if not any("--json" in each.opts for each in command.params)}
    assert without == WITHOUT_JSON.keys()


def test_the_json_of_an_invalid_mesh_file_has_its_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mesh.yaml").write_text("namespace: shop\nactors:\n  bill: {kind: paus}\n")
    outcome = asya("validate", "--json")
    assert (outcome.code, outcome.stderr) == (1, "")
    problems = json.loads(outcome.stdout)["problems"]
    assert [(each["line"], each["where"]) for each in problems] == [(3, "actors.bill.kind")]


@pytest.mark.parametrize(
    "arguments", [("--help",), ("list", "--help"), ("nothing",), ("status", "x", "--state", "none")]
)
def test_no_color_turns_colors_off(arguments: tuple[str, ...]) -> None:
    colored = asya(*arguments, environment=TERMINAL)
    plain = asya(*arguments, environment={**TERMINAL, "NO_COLOR": "1"})
    colors = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|9[0-7])[;m]")
    assert not colors.search(plain.stdout + plain.stderr)
    if "--help" in arguments:
        assert colors.search(colored.stdout)  # the variable has an effect


def test_no_color_holds_for_tables_and_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("failed", "red") == "failed"
    assert Console(force_terminal=True).no_color
