"""Links that answer pauses leave by a bus of the mesh, never by that of the account (`protocol §11.pause.notify.links`)."""

from typing import Any

import pytest

from tests.infra.conftest import SynthesizedMesh, synthesize
from tests.infra.test_permissions import resources

MESH = """
namespace: shop
code: handlers
actors:
  greet: {handler: greetings.greet}
  ask: {kind: pause, pause: {notify: [a@example.org]}}
  sign-off: {kind: pause, pause: {callback: true, notify: [a@example.org, b@example.org]}}
crew: {routable: [x-pause]}
operators: ["arn:aws:iam::*:role/Admin"]
"""
BUS = "arn:<Partition>:events:<Region>:<AccountId>:event-bus/asya-shop-links"
DEFAULT = "arn:<Partition>:events:<Region>:<AccountId>:event-bus/default"


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    folder = tmp_path_factory.mktemp("links")
    (folder / "handlers").mkdir()
    (folder / "handlers" / "greetings.py").write_text("def greet(payload):\n    return payload\n")
    (folder / "mesh.yaml").write_text(MESH)
    return synthesize(folder / "out", mesh=str(folder / "mesh.yaml"))


@pytest.mark.rule("11.pause.notify.links")
def test_11_only_a_pause_with_links_puts_events_on_their_bus(mesh: SynthesizedMesh) -> None:
    assert [bus["Name"] for bus in mesh.resources("AWS::Events::EventBus")] == ["asya-shop-links"]
    assert resources(mesh, "sign-off", "events:PutEvents") == {DEFAULT, BUS}
    for other in ("ask", "x-pause"):
        assert resources(mesh, other, "events:PutEvents") == {DEFAULT}


@pytest.mark.rule("11.pause.notify.links")
def test_11_each_pause_reaches_its_addresses_by_one_bus(mesh: SynthesizedMesh) -> None:
    rules: dict[Any, Any] = {
        rule.get("EventBusName"): rule
        for rule in mesh.resources("AWS::Events::Rule")
        if rule["Name"] == "asya-shop-pauses"
    }
    known = {"source": ["asya.shop"], "detail-type": ["Task Paused"]}
    assert {bus: rule["EventPattern"] for bus, rule in rules.items()} == {
        None: {**known, "detail": {"actor": [{"anything-but": ["sign-off"]}]}},
        "asya-shop-links": known,
    }
    arns = {
        f"arn:<Partition>:events:<Region>:<AccountId>:rule/{name}asya-shop-pauses" for name in ("", "asya-shop-links/")
    }
    (policy,) = mesh.resources("AWS::SNS::TopicPolicy", "functions")
    (allowed,) = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"]
    assert set(allowed["Condition"]["ArnEquals"]["aws:SourceArn"]) == arns


@pytest.mark.rule("11.pause.notify.links")
def test_11_a_mesh_without_links_has_no_bus(shop: SynthesizedMesh) -> None:
    assert shop.resources("AWS::Events::EventBus") == []
