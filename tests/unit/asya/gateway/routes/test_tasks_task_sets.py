"""The set of slices that a task waits for, over emulated tables (`protocol §13`, set of a task)."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from asya.capabilities.fan_in.aws.sets import SetTimes
from asya.capabilities.fan_in.sets import Decision
from asya.protocol import ids
from asya.protocol.envelope import Route
from asya.protocol.mesh_table import Actor
from asya.protocol.times import format_time
from tests.doubles.api_function import ALICE, NOW, emulated_shop
from tests.doubles.tasks import event
from tests.unit.asya.gateway.routes.test_replays import MESH, Gateway
from tests.unit.memory_tables import memory_tables

BOB = {"userArn": "arn:aws:iam::123456789012:user/bob", "userId": "AIDABOB"}
AT_SPLIT = Route(("prep",), "infer", ("x-fan-in",))
AT_FAN_IN = Route(("prep", "infer"), "x-fan-in", ())
TIMES = SetTimes(NOW, NOW.timestamp() + 1000)


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    with memory_tables(), emulated_shop(monkeypatch):
        yield Gateway()


def fanned_out(gateway: Gateway, generation: int = 0) -> None:
    """The task `env-1` of Alice has fanned out at hop 1."""
    gateway.report(event("env-1", "registered", owner="AIDAALICE", generation=generation))
    data = {"actor": "infer", "route": AT_SPLIT, "generation": generation}
    gateway.report(event("env-1", "received", 1, 1, **data), event("env-1", "completed", 1, 2, **data))


def opened(gateway: Gateway, generation: int = 0, **counted: Any) -> str:
    """Four slices of the set of hop 1; return its id."""
    set_id = ids.set_id("env-1", generation, 1)
    gateway.sets.count(set_id, 4, actor="x-fan-in", times=TIMES, **counted)
    return set_id


def set_of(gateway: Gateway) -> Any:
    status, content = gateway.get("/api/v1/mesh/env-1/set", ALICE)
    assert status == 200, content
    return content["set"]


def child(index: int, generation: int = 0) -> str:
    return ids.child_id("env-1", generation, 1, index)


@pytest.mark.rule("13.set")
def test_a_running_set_names_each_slice_that_is_missing(gateway: Gateway) -> None:
    fanned_out(gateway)
    set_id = opened(gateway, arrived={0, 1}, lost={3})
    assert set_of(gateway) == {
        "set_id": set_id,
        "position": 1,
        "slice_count": 4,
        "arrived": 2,
        "missing": [{"slice_index": 2, "id": child(2)}, {"slice_index": 3, "id": child(3), "is_lost": True}],
        "due_at": format_time(NOW),
    }


def test_an_origin_that_has_not_arrived_is_missing_too(gateway: Gateway) -> None:
    fanned_out(gateway)
    opened(gateway, arrived={1, 2, 3})
    assert set_of(gateway)["missing"] == [{"slice_index": 0, "id": "env-1"}]


@pytest.mark.rule("13.set")
def test_a_failed_set_is_found_from_its_origin_at_the_fan_in_actor(gateway: Gateway) -> None:
    fanned_out(gateway)
    set_id = opened(gateway, arrived={0, 1, 2})
    gateway.sets.save_decision(set_id, Decision(how="failed", at=format_time(NOW), reason="FanInTimeout"))
    gateway.report(event("env-1", "failed", 2, 9, reason="FanInTimeout", actor="x-fan-in", route=AT_FAN_IN))
    shown = set_of(gateway)
    assert (shown["decision"], shown["missing"]) == ("failed", [{"slice_index": 3, "id": child(3)}])


def test_a_task_in_a_later_generation_waits_in_the_set_of_an_earlier_one(gateway: Gateway) -> None:
    fanned_out(gateway, generation=1)
    opened(gateway, arrived={0, 1, 2})
    assert set_of(gateway)["missing"] == [{"slice_index": 3, "id": child(3)}]


def test_numbered_children_have_no_id(gateway: Gateway) -> None:
    gateway.table = replace(
        MESH, actors=MESH.actors | {"infer": Actor(kind="handler", options={"child_ids": "suffix"})}
    )
    fanned_out(gateway)
    opened(gateway, arrived={0, 1, 2})
    assert set_of(gateway)["missing"] == [{"slice_index": 3}]


@pytest.mark.rule("13.set")
def test_a_task_without_a_set_has_none(gateway: Gateway) -> None:
    fanned_out(gateway)
    assert set_of(gateway) is None
    gateway.table = replace(MESH, actors={"infer": Actor(kind="handler")})
    assert set_of(gateway) is None


@pytest.mark.rule("13.owner")
def test_the_set_of_a_task_of_somebody_else_is_not_shown(gateway: Gateway) -> None:
    fanned_out(gateway)
    opened(gateway, arrived={0})
    assert gateway.get("/api/v1/mesh/env-1/set", BOB)[0] == 404
