"""protocol §5.13, §11: the DLQ function reports each dead letter once and removes none."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from asya.capabilities.dead_letters.aws.letters import KEEP_SECONDS, ReceivedMessage, ReportMarks
from asya.capabilities.dead_letters.lambdas import dlq
from asya.function.hop import Arrival
from asya.protocol import ids
from asya.protocol.errors import TaskProblem
from asya.protocol.events import TaskEvent
from asya.senders.lambdas.admission import Admission
from asya.sidecar.lambdas.services import Services
from asya.testing.services.queues import Refusal
from tests.doubles.dead_letters import DlqWorld, FakeDlq
from tests.doubles.emf import metric_values, metrics
from tests.doubles.envelopes import arrival_of, message, status
from tests.doubles.tasks import event

SLICE = {
    "actor": "x-fan-in",
    "set_id": "set-1",
    "origin_id": "origin",
    "slice_index": 2,
    "slice_count": 3,
    "aggregation_key": "/results",
}


@pytest.mark.rule("11.dlq")
def test_a_dead_letter_is_copied_reported_noted_and_left(dlq_world: DlqWorld) -> None:
    queue = dlq_world.put("infer", "m-1", message())
    dlq_world.scan()
    assert dlq_world.reported == [("env-1", "DeliveryExhausted")]
    assert dlq_world.world.s3.content("dlq/env-1/0/1.json") == message()
    assert (list(queue.bodies), queue.released_ids) == (["m-1"], ["m-1"])
    assert queue.hidden_for == dlq.HIDE_SECONDS > dlq.SCAN_SECONDS


@pytest.mark.rule("11.dlq")
def test_a_dead_letter_is_reported_once_over_many_scans(dlq_world: DlqWorld) -> None:
    for number in range(5):
        dlq_world.put("infer", f"m-{number}", message(id=f"env-{number}"))
    for _ in range(3):
        dlq_world.scan()
    assert dlq_world.reported == [(f"env-{number}", "DeliveryExhausted") for number in range(5)]
    assert len(dlq_world.world.s3.keys("dlq/")) == 5


@pytest.mark.parametrize("fault", [Refusal("call"), Refusal(sender_fault=True)])
def test_a_report_that_is_not_taken_is_made_again_by_the_next_scan(dlq_world: DlqWorld, fault: Refusal) -> None:
    dlq_world.put("infer", "m-1", message())
    dlq_world.world.sqs.refuse["asya-shop-x-ends"] = [fault]
    dlq_world.scan()
    assert dlq_world.reported == []
    dlq_world.scan()
    assert [envelope_id for envelope_id, _ in dlq_world.reported] == ["env-1"]


def test_no_copy_keeps_nobody_from_reporting_but_is_tried_again(dlq_world: DlqWorld) -> None:
    dlq_world.put("infer", "m-1", message())
    dlq_world.world.s3.fails = lambda action, key: action == "put"
    dlq_world.scan()
    assert len(dlq_world.reported) == 1
    dlq_world.world.s3.fails = lambda action, key: False
    dlq_world.scan()
    dlq_world.scan()
    assert len(dlq_world.reported) == 2
    assert dlq_world.world.s3.keys("dlq/") == ["dlq/env-1/0/1.json"]


def test_a_letter_that_cannot_be_judged_hides_no_other(dlq_world: DlqWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Admission.judge

    def fail_for_one(admission: Admission, arrival: Arrival, actor: str) -> Arrival:
        if arrival.message_id == "m-1":
            raise OverflowError("date value out of range")
        return judge(admission, arrival, actor)

    monkeypatch.setattr(Admission, "judge", fail_for_one)
    dlq_world.put("infer", "m-1", message(id="env-1"))
    dlq_world.put("infer", "m-2", message(id="env-2"))
    dlq_world.scan()
    assert [envelope_id for envelope_id, _ in dlq_world.reported] == ["env-2"]


@pytest.mark.rule("9.slice-ended")
def test_the_set_of_a_slice_learns_its_end_and_a_failed_message_is_repeated(dlq_world: DlqWorld) -> None:
    dlq_world.put("infer", "m-1", message(headers={"x-asya-fan-in": SLICE}))
    dlq_world.world.sqs.refuse["asya-shop-x-fan-in"] = [Refusal(sender_fault=True)]
    dlq_world.scan()
    assert dlq_world.world.messages("x-fan-in") == []
    dlq_world.scan()
    (ended,) = dlq_world.world.messages("x-fan-in")
    assert '"slice-ended"' in ended.body
    assert '"slice_index":2' in ended.body


def test_a_task_that_went_on_does_not_fail_but_a_child_of_it_does(dlq_world: DlqWorld) -> None:
    dlq_world.known(event("env-1", "received", 2))
    dlq_world.put("infer", "m-1", message())
    dlq_world.scan()
    (report,) = dlq_world.world.gateway.events
    assert (report.id, report.parent_id) == (ids.child_id("env-1", 0, 1, "error"), "env-1")


def test_a_task_known_to_be_no_further_fails_itself(dlq_world: DlqWorld) -> None:
    dlq_world.known(event("env-1", "received", 1), event("env-1", "completed", 1))
    dlq_world.put("infer", "m-1", message())
    dlq_world.scan()
    assert dlq_world.reported == [("env-1", "DeliveryExhausted")]


@pytest.mark.rule("11.dlq.problem")
def test_the_error_names_the_last_problem(dlq_world: DlqWorld) -> None:
    problem = TaskProblem("AccessDenied", "the queue of post refuses messages of infer")
    dlq_world.known(event("env-1", "completed", 1), event("env-1", "completed", 1, 1, problem=problem))
    dlq_world.put("infer", "m-1", message())
    dlq_world.scan()
    (report,) = dlq_world.world.gateway.events
    assert isinstance(report, TaskEvent)
    assert report.data.error is not None
    assert report.data.error.message.endswith(
        "The last problem was AccessDenied: the queue of post refuses messages of infer"
    )


def test_the_problem_of_an_earlier_generation_is_not_named(dlq_world: DlqWorld) -> None:
    dlq_world.known(event("env-1", "completed", 1, problem=TaskProblem("AccessDenied", "no")))
    dlq_world.put("infer", "m-1", message(headers={"x-asya-generation": 1}))
    dlq_world.scan()
    (report,) = dlq_world.world.gateway.events
    assert isinstance(report, TaskEvent)
    assert report.data.error is not None
    assert "problem" not in report.data.error.message


def test_a_stealth_envelope_is_copied_but_not_reported(dlq_world: DlqWorld) -> None:
    dlq_world.put("infer", "m-1", message(headers={"x-asya-mesh-status": "off"}))
    dlq_world.scan()
    assert dlq_world.reported == []
    assert dlq_world.world.s3.keys("dlq/") == ["dlq/env-1/0/1.json"]


def test_what_is_no_envelope_is_kept_by_its_message_id(dlq_world: DlqWorld, caplog: pytest.LogCaptureFixture) -> None:
    dlq_world.put("infer", "m/1", b"junk")
    dlq_world.put("x-dispatch", "m-2", b'{"actor": "crunch"}')
    dlq_world.scan("infer", "x-dispatch")
    assert dlq_world.reported == [(ids.id_of_message("m/1"), "DeliveryExhausted")]
    assert dlq_world.world.s3.keys("dlq/") == ["dlq/unreadable/m%2F1", "dlq/unreadable/m-2"]
    lines = [vars(record) for record in caplog.records if record.getMessage() == "dead letter"]
    assert [(line["message_id"], line["queue"]) for line in lines] == [
        ("m/1", "asya-shop-infer-dlq"),
        ("m-2", "asya-shop-x-dispatch-dlq"),
    ]


@pytest.mark.rule("11.dlq")
def test_what_had_ended_keeps_its_phase(dlq_world: DlqWorld) -> None:
    dlq_world.put("x-sink", "m-1", message(status=status(phase="failed", reason="Timeout")))
    dlq_world.put("x-sink", "m-2", message(id="env-2", status=status(phase="succeeded")))
    dlq_world.put("x-sink", "m-3", message(id="env-3", status=status(phase="paused")))
    dlq_world.scan("x-sink")
    assert dlq_world.reported == [("env-1", "Timeout"), ("env-2", "succeeded")]


def test_an_error_with_one_queue_does_not_stop_the_scan_of_the_others(dlq_world: DlqWorld) -> None:
    dlq_world.put("infer", "m-1", message()).broken = True
    dlq_world.put("post", "m-2", message(id="env-2"))
    dlq_world.scan("infer", "post")
    assert dlq_world.reported == [("env-2", "DeliveryExhausted")]


@pytest.mark.rule("11.dlq.soon")
def test_no_queue_with_many_letters_delays_those_of_another(dlq_world: DlqWorld) -> None:
    """Code of an actor may put any number of messages into its own dead-letter queue."""
    for number in range(20):
        dlq_world.put("infer", f"m-{number}", message(id=f"env-{number}"))
    dlq_world.put("post", "m-20", message(id="of-another"))
    dlq_world.scan("infer", "post")
    ids_reported = [envelope_id for envelope_id, _ in dlq_world.reported]
    assert (ids_reported.index("of-another"), len(ids_reported)) == (2, 21)


def test_a_scan_keeps_no_letter_that_it_has_reported(dlq_world: DlqWorld) -> None:
    """Code of an actor may fill the dead-letter queue of its actor: 500 letters of 1 MB are more than the memory of the clock."""
    alive, most = 0, 0

    class Body(bytes):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    class Queue(FakeDlq):
        def scan(self, *, hide_seconds: int, may_continue: Callable[[], bool]) -> Iterator[list[ReceivedMessage]]:
            nonlocal alive, most
            for message_id, body in self.bodies.items():
                alive += 1
                yield [ReceivedMessage(arrival_of(Body(body), message_id=message_id), message_id)]
                most = max(most, alive)

    dlq_world.queues["infer"] = queue = Queue()
    for number in range(20):
        dlq_world.put("infer", f"m-{number}", message(id=f"env-{number}"))
    dlq_world.scan()
    assert queue.released_ids == list(queue.bodies)
    assert 0 < most <= 2


def test_an_error_in_the_middle_releases_all_messages(dlq_world: DlqWorld) -> None:
    queue = dlq_world.put("infer", "m-1", message())
    dlq_world.world.sqs.refuse_always["asya-shop-x-ends"] = Refusal("call")
    dlq_world.scan()
    assert queue.released_ids == ["m-1"]


def test_a_scan_ends_before_its_messages_become_visible_again(
    dlq_world: DlqWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        dlq_world.put("infer", f"m-{number}", message(id=f"env-{number}"))
    moments = iter([0.0, 1.0, dlq.SCAN_SECONDS + 1, dlq.SCAN_SECONDS + 2])
    environment = dlq_world.services.environment

    class Slow:
        is_threaded = False
        now = staticmethod(environment.now)
        monotonic = staticmethod(lambda: next(moments))
        sleep = staticmethod(environment.sleep)

    dlq_world.services = Services(dlq_world.services.settings, Slow())  # type: ignore[arg-type]
    dlq_world.scan()
    assert len(dlq_world.reported) == 2
    assert dlq_world.queues["infer"].released_ids == ["m-0", "m-1"]


def test_marks_outlive_the_messages_and_then_expire(dlq_world: DlqWorld) -> None:
    marks = ReportMarks(dlq_world.world.dynamodb, "asya-shop-sink")  # type: ignore[arg-type]
    marks.add("m-1", epoch_seconds=1000.5)
    assert marks.find(["m-1", "m-2"]) == {"m-1"}
    key = {"pk": {"S": "DLQ#m-1"}, "sk": {"S": "reported"}}
    item = dlq_world.world.dynamodb.get_item(TableName="asya-shop-sink", Key=key)["Item"]
    assert item["expires_at"] == {"N": str(1000 + KEEP_SECONDS)}
    assert KEEP_SECONDS > 14 * 86400


@pytest.mark.rule("15.DeadLetters", "15.Sweeps")
def test_15_dead_letters_are_measured_as_long_as_they_lie_there(
    dlq_world: DlqWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = dlq_world.put("infer", "m-1", message())
    dlq_world.put("infer", "m-2", message(id="env-2"))
    for _ in range(2):
        dlq_world.scan("infer", "post")
        found = metrics(capsys)
        assert metric_values(found, "DeadLetters", actor="infer") == [2]
        assert metric_values(found, "DeadLetters", actor="post") == []
        assert metric_values(found, "Sweeps", actor="x-dlq") == [1]
    queue.bodies.clear()
    dlq_world.scan("infer", "post")
    assert metric_values(metrics(capsys), "DeadLetters") == []


@pytest.mark.rule("15.Sweeps")
def test_15_a_scan_with_an_error_is_no_finished_sweep(dlq_world: DlqWorld, capsys: pytest.CaptureFixture[str]) -> None:
    dlq_world.put("infer", "m-1", message()).broken = True
    dlq_world.put("post", "m-2", message(id="env-2"))
    dlq_world.scan("infer", "post")
    found = metrics(capsys)
    assert metric_values(found, "Sweeps") == []
    assert metric_values(found, "DeadLetters", actor="post") == [1]


@pytest.mark.rule("15.Sweeps")
def test_15_a_sweep_that_nobody_watches_counts_nothing(dlq_world: DlqWorld, capsys: pytest.CaptureFixture[str]) -> None:
    dlq_world.services = Services(replace(dlq_world.services.settings, heartbeats=False))
    dlq_world.scan("infer")
    assert metrics(capsys) == []
