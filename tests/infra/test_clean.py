"""Checks of all templates: cfn-lint, cdk-nag, account independence and size."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MESHES = ("shop", "plain", "example")


@pytest.fixture(params=MESHES)
def mesh(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def test_cfn_lint_finds_nothing(shop: Any, plain: Any, example: Any, tmp_path: Path) -> None:
    templates = [str(path) for mesh in (shop, plain, example) for path in mesh.folder.glob("*.template.json")]
    command = [str(Path(sys.executable).parent / "cfn-lint"), "--", *templates]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stdout


def test_cdk_nag_has_no_unexplained_finding(mesh: Any) -> None:
    reports = json.loads((mesh.folder / "validation-report.json").read_text())["pluginReports"]
    assert [report for report in reports if report.get("conclusion") != "success"] == []


def test_templates_name_no_account_and_no_region(mesh: Any) -> None:
    for path in mesh.folder.glob("*.template.json"):
        assert "us-east-1" not in path.read_text()
    manifest = json.loads((mesh.folder / "manifest.json").read_text())
    stacks = [each for each in manifest["artifacts"].values() if each["type"] == "aws:cloudformation:stack"]
    assert {stack["environment"] for stack in stacks} == {"aws://unknown-account/unknown-region"}


def test_no_asset_needs_docker(mesh: Any) -> None:
    for path in mesh.folder.glob("*.assets.json"):
        assert json.loads(path.read_text()).get("dockerImages", {}) == {}


def test_stacks_are_within_the_limit_of_resources(mesh: Any) -> None:
    for part, template in mesh.templates.items():
        assert len(template["Resources"]) < 100, part


def test_environments_are_within_lambdas_4_kilobytes(mesh: Any) -> None:
    for function in mesh.resources("AWS::Lambda::Function"):
        assert len(json.dumps(function["Environment"]["Variables"])) < 3000
