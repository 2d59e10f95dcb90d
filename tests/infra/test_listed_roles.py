"""The list of the roles of a mesh in the templates (`protocol §4.roles`)."""

from pathlib import Path
from typing import Any

import pytest

from asya import registry
from asya.protocol import names
from asya_infra import timings
from tests.infra.conftest import HERE, SynthesizedMesh, synthesize

KIND = "Custom::AsyaRoles"


def without_relist(lists: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in each.items() if key != "Relist"} for each in lists]


@pytest.mark.rule("4.roles.order")
def test_no_late_retry_writes_an_older_list(shop: SynthesizedMesh) -> None:
    """No call starts so late that it could end after CloudFormation gave up, and none is repeated."""
    [settings] = shop.resources("AWS::Lambda::EventInvokeConfig")
    assert settings["MaximumRetryAttempts"] == 0
    assert (
        settings["MaximumEventAgeInSeconds"] + registry.PRODUCT.functions[names.ROLES].timeout <= timings.ROLES_ANSWER
    )
    assert "xroles" in str(settings["FunctionName"])


@pytest.mark.rule("4.roles.order")
def test_the_first_list_is_written_under_these_settings_too(shop: SynthesizedMesh) -> None:
    [(template, name)] = [
        (template, name)
        for template in shop.templates.values()
        for name, each in template["Resources"].items()
        if each["Type"] == "AWS::Lambda::EventInvokeConfig"
    ]
    [listed] = [each for each in template["Resources"].values() if each["Type"] == KIND]
    assert name in listed["DependsOn"]


@pytest.mark.rule("4.roles.relist")
def test_a_text_writes_the_lists_of_all_stacks_again(shop: SynthesizedMesh, tmp_path: Path) -> None:
    again = synthesize(tmp_path, mesh=str(HERE / "mesh" / "mesh.yaml"), relist="2026-11-23")
    lists = again.resources(KIND)
    assert len(lists) > 1
    assert {each["Relist"] for each in lists} == {"2026-11-23"}
    assert without_relist(lists) == shop.resources(KIND)
