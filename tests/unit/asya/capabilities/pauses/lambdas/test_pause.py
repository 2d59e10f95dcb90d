"""protocol §11: pause actors, with redeliveries and crashes."""

import json
from typing import Any

import msgspec
import pytest

from asya.protocol.mesh_table import QUEUE_RECEIVES
from asya.tasks.task_state import TaskState
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import status
from tests.doubles.mesh_world import MeshWorld
from tests.doubles.pausing import (
    FIELDS,
    KEY,
    MESH,
    ROUTE,
    FakeEvents,
    continued,
    here,
    run_pause,
    stored,
)

STEALTH = {"x-asya-mesh-status": "off"}


@pytest.mark.rule("5.9.pause", "11.pause.kept")
def test_a_pause_is_kept_reported_and_published(world: MeshWorld, bus: FakeEvents) -> None:
    assert run_pause(world, here()) == []
    assert world.targets == []
    assert stored(world)["route"] == {"prev": ["prep", "approve"], "curr": "x-resume", "next": ["post"]}
    assert stored(world)["payload"] == {"text": "hello"}
    (report,) = [event for event in world.gateway.events if event.status == "paused"]
    assert (report.position, report.data.prompt, report.data.fields) == (1, "Send it?", FIELDS)
    assert bus.sources == ["asya.shop: Task Paused"]
    (notice,) = bus.details
    assert (notice["id"], notice["actor"], notice["prompt"], notice["position"]) == ("env-1", "approve", "Send it?", 1)
    assert notice["message"] == "Task env-1 of the mesh shop is paused at approve: Send it?"
    assert notice["resume"].startswith(f"asya resume env-1 --namespace shop --pause {notice['paused_at']} --input")


@pytest.mark.rule("11.pause.kept")
def test_a_large_payload_is_kept_inline(world: MeshWorld, bus: FakeEvents) -> None:
    services = world.services("approve", MESH)
    large = json.dumps({"text": "x" * 1_100_000}).encode()
    sent = services.claim_check.offload(_delivery(here().replace(b'{"text":"hello"}', large)))
    assert b"x-asya-payload-ref" in sent.body
    assert run_pause(world, sent.body) == []
    assert len(stored(world)["payload"]["text"]) == 1_100_000
    assert "x-asya-payload-ref" not in stored(world)["headers"]


def _delivery(body: bytes) -> Any:
    from asya.function.hop import Delivery

    return Delivery("approve", body, "next")


@pytest.mark.rule("11.pause.redelivered")
def test_redelivered_it_does_nothing_more(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here())
    before = (stored(world), len(bus.details))
    world.states["env-1"] = TaskState(id="env-1", status="paused", pause_epoch=1)
    assert run_pause(world, here(), times=2) == []
    assert (stored(world), len(bus.details)) == before
    assert world.targets == []
    paused = [event for event in world.gateway.events if event.status == "paused"]
    assert len({msgspec.json.encode(event) for event in paused}) == 1  # the same report again, if any


@pytest.mark.rule("11.pause.redelivered")
def test_redelivered_after_the_resume_it_is_not_even_reported(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here())
    continued(world, b"{}")
    world.gateway.events.clear()
    assert run_pause(world, here(), times=2) == []
    assert world.gateway.reported("env-1") == []
    assert len(bus.details) == 1


@pytest.mark.rule("11.pause.redelivered")
@pytest.mark.parametrize("dies", ["keep", "report", "tell", "note"])
def test_whatever_fails_is_completed_by_the_redelivery(world: MeshWorld, bus: FakeEvents, dies: str) -> None:
    if dies == "keep":
        world.s3.fails = lambda action, key: action == "put"
    if dies == "note":
        world.s3.fails = lambda action, key: action == "put" and key.endswith(".notified")
    if dies == "report":
        world.sqs.refuse["asya-shop-x-ends"] = [Refusal("call")]
    bus.refuses = dies == "tell"
    assert run_pause(world, here()) == ["message-0"]
    assert bool(bus.details) == (dies == "note")
    world.s3.fails = lambda action, key: False
    bus.refuses = False
    assert run_pause(world, here(), times=2) == []
    assert stored(world)["id"] == "env-1"
    assert "paused" in world.gateway.reported("env-1")
    assert len(bus.details) == (2 if dies == "note" else 1)


def test_a_bus_that_stays_out_of_reach_does_not_cost_the_task_its_pause(world: MeshWorld, bus: FakeEvents) -> None:
    bus.refuses = True
    assert run_pause(world, here(), times=QUEUE_RECEIVES - 1) == ["message-0"]
    assert run_pause(world, here(), times=QUEUE_RECEIVES) == []
    assert "paused" in world.gateway.reported("env-1")
    assert stored(world)["id"] == "env-1"


@pytest.mark.rule("11.pause.notify")
def test_who_is_notified_finds_the_task_paused(world: MeshWorld, bus: FakeEvents) -> None:
    world.gateway.item_status["env-1", "paused"] = 503
    assert run_pause(world, here()) == ["message-0"]
    assert bus.details == []


@pytest.mark.rule("11.pause.stealth")
def test_stealth_fails_saying_so(world: MeshWorld, bus: FakeEvents) -> None:
    assert run_pause(world, here(headers=STEALTH)) == []
    (failed,) = world.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert (failed.status.phase, failed.status.reason) == ("failed", "RuntimeError")
    assert "cannot pause" in failed.status.error.message
    assert (world.s3.keys("paused/"), bus.details) == ([], [])


def test_a_canceled_task_does_not_pause(world: MeshWorld, bus: FakeEvents) -> None:
    world.states["env-1"] = TaskState(id="env-1", status="canceled")
    assert run_pause(world, here()) == []
    assert [sent.status.phase for sent in world.sent("x-sink") if sent.status] == ["canceled"]
    assert bus.details == []


@pytest.mark.parametrize(
    ("members", "end"),
    [
        ({"id": ""}, "x-sump"),
        ({"route": ROUTE | {"curr": "infer"}}, "x-sump"),
        ({"status": status(deadline_at="2026-01-01T00:00:00Z")}, "x-sink"),
    ],
)
def test_what_cannot_go_on_ends_as_at_any_actor(world: MeshWorld, bus: FakeEvents, members: Any, end: str) -> None:
    assert run_pause(world, here(**members)) == []
    assert world.targets == [end]


def test_pauses_in_a_loop_are_kept_apart(world: MeshWorld, bus: FakeEvents) -> None:
    further = {"prev": ["prep", "approve", "x-resume", "infer"], "curr": "approve", "next": ["post"]}
    run_pause(world, here(), here(route=further))
    assert [key for key in world.s3.keys("paused/") if key.endswith(".json")] == [KEY, "paused/env-1/0/4.json"]
    assert [detail["position"] for detail in bus.details] == [1, 4]
