"""The calls and writes of the light path: 1,000 envelopes through three actors in full batches."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
import pytest

from asya import registry
from asya.gateway.lambdas.wiring import build_report_queues
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol.mesh_table import Actor
from asya.protocol.status import created
from asya.senders.aws.role_list import RoleItems
from tests.doubles.mesh_world import MeshWorld, batch_failures, mesh_world, sqs_event

pytestmark = pytest.mark.slow

ACTORS = ("one", "two", "three")
ENVELOPES = 1_000
HOPS = ENVELOPES * len(ACTORS)
BATCH = 10
# Lambda's poller makes these for each batch: one to receive it, one to delete it.
POLLER_CALLS = 2


PERSON, ROLE = "AIDAPERSON", "AROAFUNCTION"


@dataclass
class Counts:
    """What was called and written on the way.

    Attributes:
        pre_flights: reads of the tasks table before handlers run.
        gateway_calls: HTTP calls of the gateway.
        writes: to the table of tasks, by kind of item.
        index_writes: what these cost the table's indexes, by kind of item: an entry made or taken out is a write.
        report_messages, report_batches: messages on the report queues, and batches of them.
        largest_message: bytes of the largest message of reports.
        largest_hop: bytes of the largest item written for a hop, as JSON, which is longer than DynamoDB counts.
    """

    pre_flights: int = 0
    gateway_calls: int = 0
    writes: Counter[str] = field(default_factory=Counter)
    index_writes: Counter[str] = field(default_factory=Counter)
    sends: int = 0
    batches: int = 0
    report_messages: int = 0
    report_batches: int = 0
    largest_message: int = 0
    largest_hop: int = 0

    def note_write(self, _table: str, before: Any, after: Any) -> None:
        """An item was written."""
        kind = after["sk"]["S"].partition("#")[0]
        self.writes[kind] += 1
        for index in registry.PRODUCT.tables["tasks"].indexes:
            was, is_now = (_entry(item or {}, index.partition, index.sort) for item in (before, after))
            if was != is_now:
                self.index_writes[kind] += (was is not None) + (is_now is not None)
        if kind == "hop":
            self.largest_hop = max(self.largest_hop, len(msgspec.json.encode(after)))

    def for_each_hop(self, count: float) -> float:
        """What a count comes to for each envelope and hop."""
        return round(count / HOPS, 3)


def _entry(item: Any, partition: str, sort: str) -> tuple[str, str] | None:
    """Where an item stands in an index; None if it does not."""
    return (item[partition]["S"], item[sort]["S"]) if partition in item and sort in item else None


@pytest.fixture(scope="module", params=["through the gateway", "straight onto the queue"])
def counts(request: pytest.FixtureRequest) -> Counts:
    """Every envelope through every actor, once for each way that envelopes come."""
    found = Counts()
    with pytest.MonkeyPatch.context() as patch, mesh_world(patch) as world:
        # A slow machine would split batches.
        patch.setattr("asya.function.aws.outbox.LINGER_SECONDS", 3600.0)
        patch.setattr("asya.tasks.reporting.aws.report_sender.LINGER_SECONDS", 3600.0)
        reports = _keep_reports(world, found)
        world.dynamodb.on_write = found.note_write
        bodies = [_envelope(number, with_status=request.param == "through the gateway") for number in range(ENVELOPES)]
        # The roles of all functions are listed; a person sends whole envelopes straight onto the queue.
        patch.setattr(RoleItems, "function_of", lambda _, role_id: None if role_id == PERSON else "x-completion")
        sender = PERSON if request.param == "straight onto the queue" else ROLE
        for actor in ACTORS:
            bodies = _through(world, actor, bodies, found, sender if actor == ACTORS[0] else ROLE)
            _write_reports(world, reports, found)
        found.sends = len(world.sqs.calls)
        found.pre_flights = len(world.state_reads.asked)
        found.gateway_calls = world.gateway.calls
        assert len(bodies) == ENVELOPES
    return found


def test_at_most_1_05_writes_and_a_tenth_of_a_read_for_each_envelope_and_hop(counts: Counts) -> None:
    assert 1 <= counts.for_each_hop(counts.writes["hop"]) <= 1.05
    # DynamoDB counts a write for each KB begun, and one for each entry of an index that changes.
    assert counts.largest_hop < 1024
    assert counts.index_writes["hop"] == 0
    assert counts.for_each_hop(counts.pre_flights) <= 0.1
    assert counts.gateway_calls == 0  # reports travel by queue


def test_beside_that_a_task_costs_writes_for_its_life_not_for_its_hops(counts: Counts) -> None:
    """Here: made or started. What indexes take of a whole life: tests/unit/asya/gateway/routes/test_tasks_lists.py."""
    assert counts.writes["record"] <= 2 * ENVELOPES
    assert counts.index_writes["record"] <= 2 * ENVELOPES
    assert set(counts.writes) <= {"hop", "record", "hour", "owner"}
    # A person chooses the ids of raw envelopes, and each id is claimed once.
    assert counts.writes["owner"] in (0, ENVELOPES)


def test_one_message_of_reports_for_each_batch(counts: Counts) -> None:
    assert counts.batches == HOPS / BATCH
    assert counts.report_messages == counts.batches
    # SQS bills each 64 KiB.
    assert counts.largest_message <= 16 * 1024
    assert counts.report_batches == counts.report_messages / BATCH


def test_0_42_requests_to_sqs_for_each_envelope_and_hop(counts: Counts) -> None:
    """Of each batch of ten: receive, delete, frames, reports. Of ten batches: the two polls of their reports."""
    polls = POLLER_CALLS * (counts.batches + counts.report_batches)
    assert counts.sends + polls == 0.42 * HOPS


def _envelope(number: int, *, with_status: bool) -> str:
    at = "2026-11-20T12:00:00.000000Z"
    members: dict[str, Any] = {
        "id": f"envelope-{number}",
        "route": {"prev": [], "curr": ACTORS[0], "next": ACTORS[1:]},
        "payload": {"number": number},
    }
    if with_status:
        members["status"] = created(ACTORS[0], at)
    return msgspec.json.encode(members).decode()


def _through(world: MeshWorld, actor: str, bodies: list[str], found: Counts, sender: str) -> list[str]:
    """All of these through one actor's sidecar; what it sends on."""
    others = {name: Actor(kind="handler", handler=f"handlers.{name}") for name in ACTORS if name != actor}
    process = build_sidecar(world.light(lambda payload: payload, actor=actor, others=others)).process
    waiting = iter(bodies)
    while batch := list(islice(waiting, BATCH)):
        event = sqs_event(*batch)
        for record in event["Records"]:
            record["attributes"]["SenderId"] = sender
        assert not batch_failures(process(event))
        found.batches += 1
    following = dict(zip(ACTORS, (*ACTORS[1:], "x-sink"), strict=True))[actor]
    return [message.body for message in world.messages(following)]


def _keep_reports(world: MeshWorld, found: Counts) -> list[str]:
    """Count the messages of reports; returns the list that takes them."""
    reports: list[str] = []

    def take(_queue: str, body: str) -> bool:
        found.report_messages += 1
        found.largest_message = max(found.largest_message, len(body))
        reports.append(body)
        return True

    world.sqs.take_reports = take
    return reports


def _write_reports(world: MeshWorld, reports: list[str], found: Counts) -> None:
    """Let the real consumer write the reports, in full batches."""
    queues = build_report_queues(world.services("x-reports"))
    for start in range(0, len(reports), BATCH):
        event = sqs_event(*reports[start : start + BATCH])
        for record in event["Records"]:
            record["eventSourceARN"] = "arn:aws:sqs:eu-west-1:123456789012:asya-shop-x-reports"
        assert not batch_failures(queues.process(event))
        found.report_batches += 1
    reports.clear()
