"""A deployment that removes what ends open sets, or what resumes and sends held envelopes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asya import registry
from asya.protocol.mesh_table import MeshTable
from asya.testing.dynamo.queries import new_tables
from asya.testing.dynamo.tables import MemoryDynamo
from asya_infra.assembly import Assembly
from asya_infra.deployment.held_work import check_held_work

FUNCTIONS = "Asya-shop-functions-0"
FAN_IN = registry.PRODUCT.actor_functions["fan_in"].entry_point
BEFORE = {"x-fan-in": FAN_IN, "gather": FAN_IN, "x-pause-sweep": "sweep", "bill": "sidecar"}


def templates(functions: dict[str, str]) -> dict[str, Any]:
    resources = {
        f"F{number}": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"Handler": entry_point, "Environment": {"Variables": {"ASYA_ACTOR": name}}},
        }
        for number, (name, entry_point) in enumerate(functions.items())
    }
    # Custom resources have functions without an actor.
    other = {"Type": "AWS::Lambda::Function", "Properties": {"Handler": "index.handler"}}
    return {FUNCTIONS: {"Resources": {**resources, "Other": other, "Queue": {"Type": "AWS::SQS::Queue"}}}}


def text(**attributes: str) -> dict[str, Any]:
    return {name: {"S": value} for name, value in attributes.items()}


@pytest.fixture
def session() -> Any:
    """An account with an open set of `gather`, a paused task, one that waits for years, and one whose release is unfinished."""
    tables = MemoryDynamo(new_tables(MeshTable(namespace="shop", actors={})))
    tables.put_item(
        TableName="asya-shop-fan-in",
        Item=text(pk="s", sk="set", open_in="00", actor="gather", due_at="2026-01-01T00:00:00.000000Z"),
    )
    for state, since in (("paused", "2026-01-01"), ("wait", "2036-01-01"), ("handover", "2026-01-02")):
        moment = f"{since}T00:00:00.000000Z"
        tables.put_item(
            TableName="asya-shop-tasks",
            Item=text(pk=state, sk="task", waits_in=f"{state}#3", waits_since=moment, actor="approve"),
        )
    return SimpleNamespace(client=lambda _: tables)


def problems(session: Any, after: dict[str, str], *dropped: str) -> dict[str, str]:
    assembly = Assembly(Path("cdk.out"), "shop", templates(after))
    return {each.queue: each.message for each in check_held_work(session, templates(BEFORE), assembly, dropped=dropped)}


def without(*names: str) -> dict[str, str]:
    return {name: entry_point for name, entry_point in BEFORE.items() if name not in names}


@pytest.mark.rule("1.crew.removed")
@pytest.mark.parametrize("after", [without("gather"), {**BEFORE, "gather": "sidecar"}])
def test_a_fan_in_actor_with_open_sets_is_not_removed(session: Any, after: dict[str, str]) -> None:
    found = problems(session, after)
    assert found.keys() == {"gather"}
    assert "has about 1 open set" in found["gather"]
    assert "--drop-messages gather" in found["gather"]
    assert problems(session, after, "gather") == {}


@pytest.mark.rule("1.crew.removed")
def test_the_sweep_of_held_envelopes_is_not_removed(session: Any) -> None:
    found = problems(session, without("x-pause-sweep"))
    assert found.keys() == {"x-pause-sweep"}
    assert "3 tasks pause or wait" in found["x-pause-sweep"]
    assert "`crew: routable: [x-pause]`" in found["x-pause-sweep"]
    assert problems(session, without("x-pause-sweep"), "x-pause-sweep") == {}


def test_what_holds_nothing_may_go(session: Any) -> None:
    assert problems(session, without("x-fan-in", "bill")) == {}
    assert check_held_work(None, {}, Assembly(Path("cdk.out"), "shop", templates(BEFORE))) == []
