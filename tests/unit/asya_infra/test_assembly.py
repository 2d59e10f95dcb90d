"""The templates that `cdk synth` wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from asya_infra.assembly import BOOTSTRAP_PARAMETER, AssemblyError, read_assembly


def write(folder: Path, *stacks: str, environment: str = "aws://unknown-account/unknown-region") -> None:
    artifacts: dict[str, Any] = {"Tree": {"type": "cdk:tree", "properties": {"file": "tree.json"}}}
    for stack in stacks:
        artifacts[stack] = {
            "type": "aws:cloudformation:stack",
            "environment": environment,
            "properties": {"templateFile": f"{stack}.template.json"},
        }
        (folder / f"{stack}.template.json").write_text(json.dumps({"Resources": {}, "Description": stack}))
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))


def test_the_stacks_of_a_mesh(tmp_path: Path) -> None:
    write(tmp_path, "Asya-shop-test-gateway", "Asya-shop-test-state")
    assembly = read_assembly(tmp_path)
    assert assembly.namespace == "shop-test"
    assert assembly.spark_stack == "Asya-shop-test-spark"
    assert assembly.absent_stacks == [f"Asya-shop-test-{part}" for part in ("alarms", "dashboards", "spark")]
    assert (assembly.account, assembly.region) == (None, None)
    assert assembly.templates["Asya-shop-test-state"]["Description"] == "Asya-shop-test-state"


@pytest.mark.parametrize(
    ("environment", "account", "region"),
    [
        ("aws://123456789012/eu-west-1", "123456789012", "eu-west-1"),
        ("aws://unknown-account/eu-west-1", None, "eu-west-1"),
        ("aws://123456789012/unknown-region", "123456789012", None),
    ],
)
def test_the_account_and_the_region_of_a_stage(
    tmp_path: Path, environment: str, account: str | None, region: str | None
) -> None:
    write(tmp_path, "Asya-shop-state", environment=environment)
    assembly = read_assembly(tmp_path)
    assert (assembly.account, assembly.region) == (account, region)


def test_a_folder_without_a_mesh(tmp_path: Path) -> None:
    write(tmp_path, "Other")
    with pytest.raises(AssemblyError, match="has no stack Asya-…-state"):
        read_assembly(tmp_path)


def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(AssemblyError, match="is not the output of `cdk synth`"):
        read_assembly(tmp_path)


def test_the_sizes_are_those_of_the_files(tmp_path: Path) -> None:
    write(tmp_path, "Asya-shop-state")
    template = tmp_path / "Asya-shop-state.template.json"
    template.write_text(template.read_text() + "\n" * 1000)
    assert read_assembly(tmp_path).sizes == {"Asya-shop-state": template.stat().st_size}


def test_the_bootstrap_stack_that_the_stacks_need(tmp_path: Path) -> None:
    write(tmp_path, "Asya-shop-state")
    assembly = read_assembly(tmp_path)
    assert (assembly.bootstrap_parameter, assembly.bootstrap_version) == (BOOTSTRAP_PARAMETER, 0)
    parameter = "/cdk-bootstrap/mine/version"
    needs = {"requiresBootstrapStackVersion": 6, "bootstrapStackVersionSsmParameter": parameter}
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["artifacts"]["Asya-shop-state"]["properties"] |= needs
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assembly = read_assembly(tmp_path)
    assert (assembly.bootstrap_parameter, assembly.bootstrap_version) == (parameter, 6)
