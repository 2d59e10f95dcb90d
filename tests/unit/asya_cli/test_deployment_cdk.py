"""The CDK's own tool gets the mesh, the region and the credentials that the user selects."""

from pathlib import Path

import pytest

from asya_cli.deployment import Cdk

TOOL = """#!/bin/sh
printf '%s\\n' "$AWS_REGION" "$PATH" "$@" >"$(dirname "$0")/called"
exit "${CODE:-0}"
"""


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    path = tmp_path / "cdk"
    path.write_text(TOOL)
    path.chmod(0o755)
    return path


def cdk(tool: Path, profile: str | None = None, region: str | None = None) -> Cdk:
    return Cdk(tool, "/usr/bin:/bin", profile, region)


def called(tool: Path) -> list[str]:
    return (tool.parent / "called").read_text().splitlines()


def test_the_region_and_the_profile_are_those_of_the_options(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert cdk(tool).run(["diff"]) == 0
    assert called(tool) == ["us-west-2", "/usr/bin:/bin", "diff", "--no-notices"]
    cdk(tool, "work", "eu-north-1").run(["diff"])
    assert called(tool)[0] == "eu-north-1"
    assert called(tool)[-3:] == ["--profile", "work", "--no-notices"]


def test_the_exit_code_of_the_tool_is_told(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE", "3")
    assert cdk(tool).run(["diff"]) == 3
