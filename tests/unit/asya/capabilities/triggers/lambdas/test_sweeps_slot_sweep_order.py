"""The sweep sends slots first and notes them second, so that a death or a refusal between the two loses none."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from asya.capabilities.triggers.aws.queue_senders import SlotSender
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.lambdas.sweeps import SlotSweep
from asya.capabilities.triggers.messages import slot_message
from asya.protocol.triggers import Trigger
from asya.testing.dynamo.queries import new_table
from asya.testing.dynamo.tables import MemoryDynamo

START = datetime(2026, 11, 25, 12, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
TRIGGERS = {"hourly": Trigger(route=("greet",), cron="0 * * * *", catch_up=86_400.0)}


@dataclass
class Queue:
    """The client of SQS: what is on the queue, and what was noted when it came."""

    states: ScheduleStates
    bodies: list[bytes] = field(default_factory=list)
    noted: list[datetime] = field(default_factory=list)
    refuses: bool = False

    def send_message(self, *, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803 - AWS calls it so
        if self.refuses:
            raise ClientError({"Error": {"Code": "RequestThrottled", "Message": "on demand"}}, "SendMessage")
        self.bodies.append(MessageBody.encode())
        self.noted.append(self.states.read_all()["hourly"].decided)


@dataclass
class World:
    """A sweep with its table and its queue."""

    states: ScheduleStates
    queue: Queue

    def sweep(self, now: datetime) -> None:
        settings = SimpleNamespace(table=SimpleNamespace(triggers=TRIGGERS))
        services: Any = SimpleNamespace(settings=settings, telemetry=Mock(), now=lambda: now)
        SlotSweep(services, self.states, SlotSender(self.queue, "url")).sweep()  # type: ignore[arg-type]


@pytest.fixture
def world() -> World:
    states = ScheduleStates(MemoryDynamo({"tasks": new_table("tasks")}), "tasks")  # type: ignore[arg-type]
    made = World(states, Queue(states))
    made.sweep(START)  # the schedule begins
    return made


def slots(*hours: int) -> bytes:
    first, *then = [datetime(2026, 11, 25, hour, tzinfo=UTC) for hour in hours]
    return slot_message("hourly", first, then)


@pytest.mark.rule("16.due")
def test_16_slots_are_sent_before_they_are_noted(world: World) -> None:
    world.sweep(START + 2 * HOUR)
    assert world.queue.bodies == [slots(13, 14)]
    assert world.queue.noted == [START]
    assert world.states.read_all()["hourly"].decided == datetime(2026, 11, 25, 14, tzinfo=UTC)


@pytest.mark.rule("16.due")
def test_16_slots_that_sqs_refuses_are_sent_by_the_next_sweep(world: World) -> None:
    world.queue.refuses = True
    world.sweep(START + HOUR)
    assert world.states.read_all()["hourly"].decided == START
    world.queue.refuses = False
    world.sweep(START + 2 * HOUR)
    assert world.queue.bodies == [slots(13, 14)]
