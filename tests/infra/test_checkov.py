"""checkov finds nothing in the templates that has no reason beside its resource, or in the table of the mesh."""

import json
import subprocess
import sys
from typing import Any

import pytest
from aws_cdk import App, CfnResource, Stack
from constructs import Construct

from asya_infra.acknowledgements import MESH_WIDE, acknowledge_check
from tests.infra.checkov_findings import Finding, acknowledgements, findings, stale, unexplained
from tests.infra.conftest import SynthesizedMesh
from tests.paths import PROJECT

OPEN_BUCKET = {"Resources": {"Open": {"Type": "AWS::S3::Bucket", "Properties": {"AccessControl": "PublicRead"}}}}

USES_THE_NETWORK = """
import socket, sys
from tests.infra.run_checkov import refuse_network
sys.addaudithook(refuse_network)
try:
    socket.getaddrinfo("localhost", 9)
except Exception:
    pass
"""

Templates = dict[str, dict[str, Any]]


def templates_of(name: str, mesh: SynthesizedMesh) -> Templates:
    """The templates with their metadata. Some stacks have only a condition of the CDK."""
    files = sorted(mesh.folder.glob("*.template.json"))
    templates = {f"{name}/{file.name}": json.loads(file.read_text()) for file in files}
    return {file: template for file, template in templates.items() if template.get("Resources")}


@pytest.fixture(scope="module")
def templates(shop: SynthesizedMesh, example: SynthesizedMesh) -> Templates:
    return templates_of("shop", shop) | templates_of("example", example)


@pytest.fixture(scope="module")
def found(templates: Templates, tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """One run for all templates: half of its time is its start."""
    return findings({**templates, "open": OPEN_BUCKET}, tmp_path_factory.mktemp("checkov"))


def test_checkov_finds_an_open_bucket(found: list[Finding]) -> None:
    assert "CKV_AWS_20" in {each.check for each in found if (each.template, each.resource) == ("open", "Open")}


def test_every_finding_has_a_reason(found: list[Finding], templates: Templates) -> None:
    of_meshes = [each for each in found if each.template != "open"]
    missing = unexplained(of_meshes, set(acknowledgements(templates)), MESH_WIDE)
    advice = "Mend the template, or explain the finding with asya_infra.acknowledgements.acknowledge_check."
    assert not missing, "\n".join([*map(str, missing), advice])


def test_every_reason_has_a_finding(found: list[Finding], templates: Templates) -> None:
    of_meshes = [each for each in found if each.template != "open"]
    assert stale(of_meshes, set(acknowledgements(templates)), MESH_WIDE) == []


def test_no_reason_is_empty() -> None:
    assert all(reason.strip() for reason in MESH_WIDE.values())


def test_a_run_that_uses_the_network_fails() -> None:
    result = subprocess.run(
        [sys.executable, "-c", USES_THE_NETWORK], capture_output=True, text=True, cwd=PROJECT, check=False
    )
    assert result.returncode == 3
    assert "checkov uses the network: socket.getaddrinfo" in result.stderr


BUCKET = Finding("shop/state", "Bucket", "CKV_AWS_18", "access logs")
QUEUE = Finding("shop/queues", "Queue", "CKV_AWS_27", "encryption")


def test_a_finding_is_explained_for_its_resource_and_for_the_mesh() -> None:
    assert unexplained([BUCKET, QUEUE], set(), []) == [QUEUE, BUCKET]
    assert unexplained([BUCKET, QUEUE], {BUCKET}, ["CKV_AWS_27"]) == []
    other_bucket = Finding("shop/state", "Other", "CKV_AWS_18", "access logs")
    assert unexplained([other_bucket], {BUCKET}, []) == [other_bucket]


def test_a_reason_without_a_finding_is_stale() -> None:
    assert stale([BUCKET, QUEUE], {BUCKET}, ["CKV_AWS_27"]) == []
    assert stale([], {BUCKET}, ["CKV_AWS_27"]) == ["shop/state: Bucket: CKV_AWS_18: access logs", "CKV_AWS_27"]


def test_a_reason_for_the_mesh_is_stale_if_resources_explain_all_findings() -> None:
    assert stale([BUCKET], {BUCKET}, ["CKV_AWS_18"]) == ["CKV_AWS_18"]


def test_a_resource_has_several_acknowledgements() -> None:
    stack = Stack(App(), "Stack")
    construct = Construct(stack, "Bucket")
    resource = CfnResource(construct, "Resource", type="AWS::S3::Bucket")
    acknowledge_check(construct, "CKV_AWS_18", "no access logs")
    acknowledge_check(construct, "CKV_AWS_21", "no versions")
    template = {"Resources": {"Bucket": {"Metadata": {"checkov": resource.get_metadata("checkov")}}}}
    assert {(each.check, each.text) for each in acknowledgements({"state": template})} == {
        ("CKV_AWS_18", "no access logs"),
        ("CKV_AWS_21", "no versions"),
    }


def test_an_acknowledgement_needs_a_reason() -> None:
    construct = Construct(Stack(App(), "Stack"), "Bucket")
    with pytest.raises(ValueError, match=r"Stack/Bucket: the acknowledgement of CKV_AWS_18 needs a reason"):
        acknowledge_check(construct, "CKV_AWS_18", " ")
