"""Checks of all templates: cfn-lint, cdk-nag, account independence and size."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MESHES = ("shop", "plain", "example")


@pytest.fixture(params=MESHES)
def mesh(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def keys_of(value: Any, path: str = "") -> Iterator[str]:
    """The paths of the keys of properties; a reference is a value."""
    if isinstance(value, dict) and not any(key == "Ref" or key.startswith("Fn::") for key in value):
        for key, item in value.items():
            yield from keys_of(item, f"{path}/{key}")
    elif isinstance(value, list):
        for item in value:
            yield from keys_of(item, f"{path}[]")
    else:
        yield path


def resource_forms(template: Path) -> set[tuple[str, frozenset[str]]]:
    """The types of the resources with the keys of each; those of the mesh's own types are free."""
    resources = json.loads(template.read_text()).get("Resources", {}).values()
    return {
        (each["Type"], frozenset(() if each["Type"].startswith("Custom::") else keys_of(each.get("Properties", {}))))
        for each in resources
    }


def distinct(templates: list[Path]) -> list[Path]:
    """The templates with new forms of resources: each has a form that no earlier template has."""
    seen: set[tuple[str, frozenset[str]]] = set()
    found = []
    for template in templates:
        forms = resource_forms(template)
        if not forms <= seen:
            found.append(template)
        seen |= forms
    return found


def test_a_template_repeats_others_if_it_has_their_resources_with_other_values(tmp_path: Path) -> None:
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "a", "Tags": [{"Key": "b"}]}}
    templates = {
        "first": [queue],
        "other name": [{**queue, "Properties": {"QueueName": {"Fn::Sub": "c"}, "Tags": [{"Key": "d"}, {"Key": "e"}]}}],
        "other key": [queue, {**queue, "Properties": {"QueueName": "a", "DelaySeconds": 1, "Tags": [{"Key": "b"}]}}],
        "key left out": [{**queue, "Properties": {"QueueName": "a"}}],
        "other type": [{**queue, "Type": "AWS::SNS::Topic"}],
        "nothing": [],
    }
    paths = [tmp_path / name for name in templates]
    for path in paths:
        path.write_text(json.dumps({"Resources": dict(enumerate(templates[path.name]))}))
    assert [path.name for path in distinct(paths)] == ["first", "other key", "key left out", "other type"]


def test_cfn_lint_finds_nothing(shop: Any, plain: Any, example: Any, tmp_path: Path) -> None:
    """A third of the templates has only resources of others with other values: `make test-full` checks these too."""
    templates = [path for mesh in (shop, plain, example) for path in sorted(mesh.folder.glob("*.template.json"))]
    checked = templates if os.environ.get("ASYA_FULL_SIZE") else distinct(templates)
    command = [str(Path(sys.executable).parent / "cfn-lint"), "--", *map(str, checked)]
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
        # Each call of the gateway is a route, and has a second one for tokens (JWT).
        assert len(template["Resources"]) < (200 if part == "gateway" else 100), part


def test_environments_are_within_lambdas_4_kilobytes(mesh: Any) -> None:
    for function in mesh.resources("AWS::Lambda::Function"):
        assert len(json.dumps(function["Environment"]["Variables"])) < 3000
