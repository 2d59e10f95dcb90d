"""The templates that `cdk synth` wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from asya_infra.deployment.assembly import Assembly


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
    assembly = Assembly.read(tmp_path)
    assert assembly.namespace == "shop-test"
    assert assembly.spark_stack == "Asya-shop-test-spark"
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
    assembly = Assembly.read(tmp_path)
    assert (assembly.account, assembly.region) == (account, region)


def test_a_folder_without_a_mesh(tmp_path: Path) -> None:
    write(tmp_path, "Other")
    with pytest.raises(ValueError, match="has no stack Asya-…-state"):
        Assembly.read(tmp_path)
