"""The CDK's own tool gets the mesh, the region and the credentials that the user selects."""

from pathlib import Path

import pytest

from asya_cli.deployment import Cdk
from asya_cli.errors import CommandError
from asya_infra.product.app import CdkApp

TOOL = """#!/bin/sh
printf '%s\\n' "$AWS_REGION" "$KEPT" "$PATH" "$@" >"$(dirname "$0")/called"
echo "Supply a stack id (A, B) to display its template." >&2
echo "note: mesh.yaml: operators" >&2
exit "${CODE:-0}"
"""


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    path = tmp_path / "cdk"
    path.write_text(TOOL)
    path.chmod(0o755)
    return path


def cdk(tool: Path, profile: str | None = None, region: str | None = None) -> Cdk:
    app = CdkApp(Path("/the venv/python"), Path("/app.py"), {"KEPT": "kept"})
    return Cdk(tool, app, "/usr/bin:/bin", profile, region)


def called(tool: Path) -> list[str]:
    return (tool.parent / "called").read_text().splitlines()


def test_the_region_and_the_profile_are_those_of_the_options(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert cdk(tool).run(["diff"]) == 0
    assert called(tool) == ["us-west-2", "kept", "/usr/bin:/bin", "diff", "--no-notices"]
    cdk(tool, "work", "eu-north-1").run(["diff"])
    assert called(tool)[0] == "eu-north-1"
    assert called(tool)[-3:] == ["--profile", "work", "--no-notices"]


def test_a_synthesis_has_the_app_and_the_options_of_the_mesh(
    tool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cdk(tool).synthesize(tmp_path / "out", ("mesh=/shop/mesh.yaml", "stage=dev"))
    assert capsys.readouterr().err == "note: mesh.yaml: operators\n"
    arguments = called(tool)[3:]
    assert arguments[:4] == ["synth", "--quiet", "--app", "exec '/the venv/python' /app.py"]
    assert arguments[-5:-1] == ["--context", "mesh=/shop/mesh.yaml", "--context", "stage=dev"]


def test_a_mesh_that_cannot_be_synthesized_is_told(tool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE", "1")
    with pytest.raises(CommandError, match="what is wrong is above"):
        cdk(tool).synthesize(tmp_path / "out", ())
