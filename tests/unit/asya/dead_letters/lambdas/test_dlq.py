"""protocol §5.13, §11, DLQ: looked at without removing anything, reported once per message."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.dead_letters.aws.queue import Count, Seen
from asya.dead_letters.aws.report_marks import KEEP_SECONDS, ReportMarks
from asya.dead_letters.lambdas import dlq
from asya.dead_letters.lambdas.dlq import DeadLetterWatch
from asya.dead_letters.lambdas.wiring import build_dlq
from asya.protocol import ids
from asya.protocol.mesh_table import Actor
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.tasks import Tasks
from tests.doubles.envelopes import arrived, mesh, message, status
from tests.doubles.mesh_world import MeshWorld, recorded
from tests.doubles.sqs import Refusal
from tests.doubles.tasks import event

MESH = mesh({"x-fan-in": Actor(kind="fan_in"), "crunch": Actor(kind="spark")})
SLICE = {
    "actor": "x-fan-in",
    "set_id": "set-1",
    "origin_id": "origin",
    "slice_index": 2,
    "slice_count": 3,
    "aggregation_key": "/results",
}


@dataclass
class FakeDlq:
    """A dead-letter queue that gives two messages at a time, hides what it gave, and has no way to remove one."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    put_back_ids: list[str] = field(default_factory=list)
    broken: bool = False
    hidden_for: int = 0

    def count(self) -> Count:
        if self.broken:
            raise ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "on demand"}}, "GetQueueAttributes")
        return Count(len(self.bodies), 0)

    def look(self, *, hide_seconds: int, goes_on: Callable[[], bool]) -> Iterator[list[Seen]]:
        self.hidden_for = hide_seconds
        left = [Seen(arrived(body, message_id=message_id), "r") for message_id, body in self.bodies.items()]
        while left and goes_on():
            some, left = left[:2], left[2:]
            yield some

    def put_back(self, seen: Iterable[Seen]) -> None:
        self.put_back_ids += [each.message_id for each in seen]


@dataclass
class Watched:
    """The function between queues that the tests fill."""

    world: MeshWorld
    services: Services
    queues: dict[str, FakeDlq] = field(default_factory=dict)

    def put(self, actor: str, message_id: str, body: bytes) -> FakeDlq:
        queue = self.queues.setdefault(actor, FakeDlq())
        queue.bodies[message_id] = body
        return queue

    def watch(self) -> DeadLetterWatch:
        queue: Any = lambda actor: self.queues.setdefault(actor, FakeDlq())  # noqa: E731
        return replace(build_dlq(self.services), queue=queue)

    def look(self, *actors: str) -> None:
        self.watch().look(actors or ("infer",))

    @property
    def reported(self) -> list[tuple[str, str]]:
        return [(each.id, each.data.reason or each.status) for each in self.world.gateway.events]

    def known(self, *events: Any) -> None:
        """The task has been reported on before."""
        store = DynamoTaskStore(self.world.dynamodb, "asya-shop-tasks", 3600.0)  # type: ignore[arg-type]
        Tasks(store, print, threaded=False).report(list(events), datetime.now(UTC), may_create=True)


@pytest.fixture
def watched(world: MeshWorld) -> Watched:
    return Watched(world, world.services("x-dlq", MESH))


@pytest.mark.rule("11.dlq")
def test_a_dead_letter_is_copied_reported_noted_and_left(watched: Watched) -> None:
    queue = watched.put("infer", "m-1", message())
    watched.look()
    assert watched.reported == [("env-1", "DeliveryExhausted")]
    assert watched.world.s3.content("dlq/env-1/0/1.json") == message()
    assert (list(queue.bodies), queue.put_back_ids) == (["m-1"], ["m-1"])
    assert queue.hidden_for == dlq.HIDE_SECONDS > dlq.LOOK_SECONDS


@pytest.mark.rule("11.dlq")
def test_it_is_reported_once_however_often_it_is_looked_at(watched: Watched) -> None:
    for number in range(5):
        watched.put("infer", f"m-{number}", message(id=f"env-{number}"))
    for _ in range(3):
        watched.look()
    assert watched.reported == [(f"env-{number}", "DeliveryExhausted") for number in range(5)]
    assert len(watched.world.s3.keys("dlq/")) == 5


@pytest.mark.parametrize("answer", [500, 503, 429])
def test_a_report_that_is_not_taken_is_made_again_by_the_next_look(watched: Watched, answer: int) -> None:
    watched.put("infer", "m-1", message())
    watched.put("infer", "m-2", message(id="env-2"))
    watched.world.gateway.item_status["env-1", "failed"] = answer
    watched.look()
    watched.world.gateway.item_status.clear()
    watched.look()
    assert [envelope_id for envelope_id, _ in watched.reported] == ["env-1", "env-2", "env-1"]


@pytest.mark.parametrize("answer", [400, 404])
def test_a_report_that_will_never_be_taken_counts_as_taken(watched: Watched, answer: int) -> None:
    watched.put("infer", "m-1", message())
    watched.world.gateway.item_status["env-1", "failed"] = answer
    watched.look()
    watched.look()
    assert len(watched.reported) == 1


def test_no_copy_keeps_nobody_from_reporting_but_is_tried_again(watched: Watched) -> None:
    watched.put("infer", "m-1", message())
    watched.world.s3.fails = lambda operation, key: operation == "put"
    watched.look()
    assert len(watched.reported) == 1
    watched.world.s3.fails = lambda operation, key: False
    watched.look()
    watched.look()
    assert len(watched.reported) == 2
    assert watched.world.s3.keys("dlq/") == ["dlq/env-1/0/1.json"]


@pytest.mark.rule("9.slice-ended")
def test_the_set_of_a_slice_is_told_and_told_again_if_that_failed(watched: Watched) -> None:
    watched.put("infer", "m-1", message(headers={"x-asya-fan-in": SLICE}))
    watched.world.sqs.refuse["asya-shop-x-fan-in"] = [Refusal(sender_fault=True)]
    watched.look()
    assert watched.world.messages("x-fan-in") == []
    watched.look()
    (told,) = watched.world.messages("x-fan-in")
    assert '"slice-ended"' in told.body
    assert '"slice_index":2' in told.body


def test_a_task_that_went_on_does_not_fail_but_a_child_of_it_does(watched: Watched) -> None:
    watched.known(event("env-1", "received", 2))
    watched.put("infer", "m-1", message())
    watched.look()
    (told,) = watched.world.gateway.events
    assert (told.id, told.parent_id) == (ids.child_id("env-1", 0, 1, "error"), "env-1")


def test_a_task_known_to_be_no_further_fails_itself(watched: Watched) -> None:
    watched.known(event("env-1", "received", 1), event("env-1", "completed", 1))
    watched.put("infer", "m-1", message())
    watched.look()
    assert watched.reported == [("env-1", "DeliveryExhausted")]


def test_a_stealth_envelope_is_copied_but_not_reported(watched: Watched) -> None:
    watched.put("infer", "m-1", message(headers={"x-asya-mesh-status": "off"}))
    watched.look()
    assert watched.reported == []
    assert watched.world.s3.keys("dlq/") == ["dlq/env-1/0/1.json"]


def test_what_is_no_envelope_is_kept_by_its_message_id(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.put("infer", "m/1", b"junk")
    watched.put("x-dispatch", "m-2", b'{"actor": "crunch"}')
    watched.look("infer", "x-dispatch")
    assert watched.reported == [(ids.id_of_message("m/1"), "DeliveryExhausted")]
    assert watched.world.s3.keys("dlq/") == ["dlq/unreadable/m%2F1", "dlq/unreadable/m-2"]
    lines = [vars(record) for record in caplog.records if record.getMessage() == "dead letter"]
    assert [(line["message_id"], line["queue"]) for line in lines] == [
        ("m/1", "asya-shop-infer-dlq"),
        ("m-2", "asya-shop-x-dispatch-dlq"),
    ]


@pytest.mark.rule("11.dlq")
def test_what_had_ended_keeps_its_phase(watched: Watched) -> None:
    watched.put("x-sink", "m-1", message(status=status(phase="failed", reason="Timeout")))
    watched.put("x-sink", "m-2", message(id="env-2", status=status(phase="succeeded")))
    watched.put("x-sink", "m-3", message(id="env-3", status=status(phase="paused")))
    watched.look("x-sink")
    assert watched.reported == [("env-1", "Timeout"), ("env-2", "succeeded")]


def test_trouble_with_one_queue_does_not_keep_the_others_from_being_looked_at(watched: Watched) -> None:
    watched.put("infer", "m-1", message()).broken = True
    watched.put("post", "m-2", message(id="env-2"))
    watched.look("infer", "post")
    assert watched.reported == [("env-2", "DeliveryExhausted")]


def test_trouble_in_the_middle_puts_everything_back(watched: Watched) -> None:
    queue = watched.put("infer", "m-1", message())
    watched.world.gateway.status = 500
    watched.look()
    assert queue.put_back_ids == ["m-1"]


def test_a_look_ends_before_what_it_hid_comes_back(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        watched.put("infer", f"m-{number}", message(id=f"env-{number}"))
    moments = iter([0.0, 1.0, dlq.LOOK_SECONDS + 1, dlq.LOOK_SECONDS + 2])
    environment = watched.services.environment

    class Slow:
        is_threaded = False
        now = staticmethod(environment.now)
        monotonic = staticmethod(lambda: next(moments))

    watched.services = Services(watched.services.settings, Slow())  # type: ignore[arg-type]
    watched.look()
    assert len(watched.reported) == 2
    assert watched.queues["infer"].put_back_ids == ["m-0", "m-1"]


def test_an_alarm_means_its_own_queue_a_tick_all_of_them(watched: Watched) -> None:
    alarm = recorded("dead-letters-alarm")
    assert dlq.queues_to_scan(alarm, watched.services) == ("infer",)
    other = alarm | {"detail": alarm["detail"] | {"alarmName": "asya-shop-test-infer-dlq"}}
    assert dlq.queues_to_scan(other, watched.services) == ()
    tick = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}
    everyone = dlq.queues_to_scan(tick, watched.services)
    assert {"infer", "x-sink", "x-sump", "x-fan-in", "crunch", "x-dispatch", "x-completion"} <= set(everyone)


def test_notes_outlive_the_messages_and_then_expire(watched: Watched) -> None:
    notes = ReportMarks(watched.world.dynamodb, "asya-shop-sink")  # type: ignore[arg-type]
    notes.note("m-1", epoch_seconds=1000.5)
    assert notes.reported(["m-1", "m-2"]) == {"m-1"}
    key = {"pk": {"S": "DLQ#m-1"}, "sk": {"S": "reported"}}
    item = watched.world.dynamodb.get_item(TableName="asya-shop-sink", Key=key)["Item"]
    assert item["expires_at"] == {"N": str(1000 + KEEP_SECONDS)}
    assert KEEP_SECONDS > 14 * 86400
