"""protocol §11, x-sink: the time of an end is that of its claim, whenever its report leaves."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from asya.ends.lambdas.wiring import build_sink, build_sump
from asya.protocol.events import TaskEvent
from asya.protocol.hops import fold
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge
from asya.protocol.times import parse_time
from asya.tasks.cancellation import cancel_record
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import message, status
from tests.doubles.fan_mesh import Clock
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

ENDS = "asya-shop-x-ends"
ERROR = {"type": "ValueError", "message": "bad"}
BUILD = {"x-sink": build_sink, "x-sump": build_sump}
MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def run(world: MeshWorld, clock: Clock, actor: str, phase: str, generation: int = 0) -> list[str]:
    """Process one envelope that ended; returns the ids of the messages that stay on the queue."""
    block = status(phase=phase, reason="RuntimeError", error=ERROR) if phase == "failed" else status(phase=phase)
    done = {"prev": ["prep", "infer"], "curr": "", "next": []}
    body = message(status=block, route=done, headers={"x-asya-generation": generation} if generation else {})
    services = replace(world.services(actor), environment=clock)
    return batch_failures(BUILD[actor](services).process(sqs_event(body)))


def canceled(at: datetime) -> TaskRecord:
    """The record of a task that a call canceled."""
    moment = "2026-11-20T11:59:00.000000Z"
    running = TaskRecord(id="env-1", status="running", created_at=moment, updated_at=moment)
    return cancel_record(running, fold((), 0), now=at, by="AIDAOSCAR")


def last_event(world: MeshWorld) -> TaskEvent:
    event = world.gateway.events[-1]
    assert isinstance(event, TaskEvent)
    return event


@pytest.mark.rule("11.sink.claimed-at", "13.cancel.claimed")
@pytest.mark.parametrize(("actor", "phase"), [("x-sink", "succeeded"), ("x-sink", "failed"), ("x-sump", "failed")])
def test_a_cancellation_between_claim_and_report_loses(world: MeshWorld, clock: Clock, actor: str, phase: str) -> None:
    """The end is claimed, the task is canceled, and a redelivery reports the end."""
    world.sqs.refuse_always[ENDS] = Refusal("call")
    assert run(world, clock, actor, phase) == ["message-0"]
    claimed_by = clock.moment
    clock.moment += MINUTE
    record = canceled(clock.now())
    world.sqs.refuse_always.clear()
    clock.moment += MINUTE
    assert run(world, clock, actor, phase) == []
    assert parse_time(last_event(world).at) <= claimed_by
    assert merge(record, last_event(world)).status == phase


@pytest.mark.rule("11.sink.claimed-at")
def test_the_end_of_a_later_generation_has_its_own_time(world: MeshWorld, clock: Clock) -> None:
    run(world, clock, "x-sink", "succeeded")
    redriven_at = clock.moment = clock.moment + MINUTE
    run(world, clock, "x-sink", "succeeded", generation=1)
    assert parse_time(last_event(world).at) > redriven_at


@pytest.mark.rule("11.sink.claimed-at")
def test_x_sump_reports_a_failure_with_the_time_of_x_sink(world: MeshWorld, clock: Clock) -> None:
    run(world, clock, "x-sink", "failed")
    clock.moment += MINUTE
    run(world, clock, "x-sump", "failed")
    assert len({event.at for event in world.gateway.events}) == 1
