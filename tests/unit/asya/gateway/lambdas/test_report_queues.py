"""The consumer of the report queues (`protocol §5`, reports)."""

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.gateway.lambdas.report_queues import RECEIVES_BEFORE_REFUSAL, ReportQueues
from asya.gateway.lambdas.wiring import build_report_queues
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.events import PartialEvent, TaskEvent
from asya.protocol.headers import KEY
from asya.protocol.task_key import sealed
from asya.protocol.times import format_time
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.tasks import Tasks
from tests.doubles.emf import metric_values, metrics
from tests.doubles.mesh_world import MeshWorld, batch_failures
from tests.doubles.report_queues import NOW, Clock, batch, body, foreign, items, record, refused
from tests.doubles.senders import MESH_SECRET
from tests.doubles.tasks import ACTORS, at, event, hop, run_note

pytestmark = pytest.mark.lists_roles


def held(report: TaskEvent) -> TaskEvent:
    """The report of an actor that holds the task."""
    envelope = sealed(Envelope(id=report.id, route=Route((), "infer", ()), payload=NULL), MESH_SECRET)
    return msgspec.structs.replace(report, key=envelope.headers[KEY])


@pytest.mark.rule("5.two-queues", "5.any-order")
def test_reports_of_both_queues_make_the_record_in_any_order(world: MeshWorld, queues: ReportQueues) -> None:
    end = event("t", "succeeded", 3, 40, created_at="2026-11-20T08:59:59.000000Z", owner="AIDA")
    assert batch_failures(queues.process(batch("x-ends", body(end)))) == []
    for position in (2, 0, 1):
        late = hop("t", position, created_at="2026-11-20T08:59:59.000000Z", owner="AIDA")
        assert batch_failures(queues.process(batch("x-reports", body(*late)))) == []
    made = record(world)
    assert (made["status"]["S"], made["owner"]["S"]) == ("succeeded", "AIDA")
    assert made["created_at"]["S"] == "2026-11-20T08:59:59.000000Z"
    assert made["revision"]["N"] == "1"  # the end knew all that a record needs, so progress wrote hops only
    assert [sk for _, sk in items(world) if sk.startswith("hop#")] == [
        f"hop#0000#{position:06d}#000001#done" for position in (2, 0, 1)
    ]


@pytest.mark.rule("5.ends-of-the-crew", "15.ReportsRefused")
@pytest.mark.parametrize("status", ["succeeded", "failed", "canceled", "paused"])
def test_an_end_on_the_queue_of_all_actors_is_refused_alone(
    world: MeshWorld, queues: ReportQueues, status: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = (("received", 0), (status, 1), ("completed", 0))
    text = body(*(held(event("t", each, at, actor="infer")) for each, at in stages))
    assert batch_failures(queues.process(batch("x-reports", text, sender="AROAINFER"))) == []
    assert record(world)["status"]["S"] == "running"
    (hops,) = [sk for _, sk in items(world) if sk.startswith("hop")]
    assert hops.startswith("hops#0000#000000#000001#")  # it lacks the time of its processing
    (kept,) = refused(world)
    assert (kept["queue"], kept["message_id"], kept["sender"]) == (
        "x-reports",
        "message-0",
        "AROAINFER:asya-shop-session",
    )
    (report,) = kept["reports"]
    assert report["report"]["status"] == status
    assert "x-ends" in report["problem"]
    assert metric_values(metrics(capsys), "ReportsRefused") == [1]


@pytest.mark.rule("5.refused")
@pytest.mark.parametrize(
    "bad",
    [5, {"id": "t"}, {"id": "", "status": "received"}, {"id": "t", "status": "received", "at": "today"}, [], None],
)
def test_a_report_that_cannot_be_read_drops_no_neighbor(world: MeshWorld, queues: ReportQueues, bad: object) -> None:
    text = body(event("a", "received"), bad, event("b", "received"))
    assert batch_failures(queues.process(batch("x-reports", text, body(event("c", "received"))))) == []
    assert all(record(world, task_id) for task_id in "abc")
    (kept,) = refused(world)
    assert [report["report"] for report in kept["reports"]] == [bad]


@pytest.mark.rule("5.refused")
@pytest.mark.parametrize("text", ["", "hello", '{"id": "t"}', "[" + "5," * 500 + "5]", '[{"id": "\ud800"}]'])
def test_a_message_that_cannot_be_read_is_kept_whole(world: MeshWorld, queues: ReportQueues, text: str) -> None:
    assert batch_failures(queues.process(batch("x-reports", text, body(event("c", "received"))))) == []
    assert record(world, "c")
    (kept,) = refused(world)
    if "\ud800" not in text:
        assert kept["body"] == text
    assert kept.get("problem") or kept["reports"]


@pytest.mark.rule("5.refused")
def test_a_refused_report_that_cannot_be_stored_keeps_its_message(world: MeshWorld, queues: ReportQueues) -> None:
    world.s3.fails = lambda action, key: action == "put"
    text = body(event("a", "received"), 5)
    assert batch_failures(queues.process(batch("x-reports", text, body(event("b", "received"))))) == ["message-0"]
    assert record(world, "a")  # the others count at once; the redelivery repeats them
    world.s3.fails = lambda action, key: False
    assert batch_failures(queues.process(batch("x-reports", text, receive_counts={0: 2}))) == []
    assert len(refused(world)) == 1


@pytest.mark.rule("5.table-errors")
def test_an_error_of_the_table_keeps_the_messages_whose_reports_are_not_written(
    world: MeshWorld, queues: ReportQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = world.dynamodb.put_item

    def put(**call: Any) -> Any:
        if call["Item"]["pk"]["S"] == "a":
            raise ClientError({"Error": {"Code": "InternalServerError", "Message": "on demand"}}, "PutItem")
        return write(**call)

    monkeypatch.setattr(world.dynamodb, "put_item", put)
    bodies = body(event("a", "registered"), event("b", "registered")), body(event("c", "registered"))
    assert batch_failures(queues.process(batch("x-reports", *bodies))) == ["message-0"]
    assert record(world, "b")
    assert record(world, "c")
    monkeypatch.setattr(world.dynamodb, "put_item", write)
    assert batch_failures(queues.process(batch("x-reports", bodies[0], receive_counts={0: 2}))) == []
    assert record(world, "a")


def test_it_sends_nothing(world: MeshWorld, queues: ReportQueues) -> None:
    """Lambda's recursion guard would end a chain that leads back to an actor."""
    queues.process(batch("x-ends", body(event("t", "failed", 1)), "hello"))
    assert world.sqs.calls == []


def test_partials_are_stored(world: MeshWorld, queues: ReportQueues) -> None:
    partial = PartialEvent(id="t", at="2026-11-20T09:00:00Z", data=msgspec.Raw(b'{"n":1}'), actor=ACTORS[0])
    assert batch_failures(queues.process(batch("x-reports", body(partial)))) == []
    assert ("t", "fly#0000#000000#000001#0001#000000-000000") in items(world)


def test_the_messages_of_another_queue_are_an_error(queues: ReportQueues) -> None:
    with pytest.raises(ValueError, match="asya-shop-infer"):
        queues.process(batch("infer", body()))


@pytest.mark.rule("3.gateway-url.foreign")
def test_reports_for_a_foreign_gateway_are_passed_on(world: MeshWorld, meshes: ReportQueues) -> None:
    report = foreign(world, event("t", "received"))
    hostile = report | {"gateway_url": "http://169.254.169.254/"}
    assert batch_failures(meshes.process(batch("x-reports", body(report, hostile), body(event("o", "received"))))) == []
    assert world.gateway.reported("t") == ["received"]
    assert record(world, "t") is None
    assert record(world, "o")
    (kept,) = refused(world)
    assert "allowed host" in kept["reports"][0]["problem"]
    world.gateway.status = 503
    assert batch_failures(meshes.process(batch("x-reports", body(report), body(event("p", "received"))))) == [
        "message-0"
    ]
    assert record(world, "p")  # a foreign gateway that is down holds up no own report


@pytest.mark.rule("3.gateway-url.foreign")
@pytest.mark.parametrize("status", [400, 404])
def test_an_end_that_a_foreign_gateway_refuses_for_good_is_kept(
    world: MeshWorld, meshes: ReportQueues, status: int
) -> None:
    world.gateway.status = status
    text = body(foreign(world, event("t", "failed", 1)), foreign(world, event("t", "completed")), 5)
    world.s3.fails = lambda action, key: action == "put"
    assert batch_failures(meshes.process(batch("x-ends", text))) == ["message-0"]
    world.s3.fails = lambda action, key: False
    assert batch_failures(meshes.process(batch("x-ends", text))) == []
    (kept,) = refused(world)
    unreadable, end = kept["reports"]
    assert (unreadable["report"], end["report"]["status"]) == (5, "failed")
    assert str(status) in end["problem"]


@pytest.mark.rule("3.gateway-url.foreign")
@pytest.mark.parametrize("url", ["http://own.example", "https://own.example/x"])
def test_any_address_on_the_own_host_is_the_own_gateway(world: MeshWorld, url: str) -> None:
    settings = dataclasses.replace(world.services("x-reports").settings, gateway_url="https://own.example")
    report = msgspec.to_builtins(event("t", "failed", 1)) | {"gateway_url": url}
    assert batch_failures(build_report_queues(Services(settings, Clock())).process(batch("x-ends", body(report)))) == []
    assert record(world)["status"]["S"] == "failed"


@pytest.mark.rule("5.refused")
def test_reports_that_raise_an_unexpected_error_hold_up_no_others(
    world: MeshWorld, queues: ReportQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Tasks.report

    def report(tasks: Tasks, events: Sequence[TaskEvent], now: datetime, *, may_create: bool) -> Any:
        if any(each.id == "bad" for each in events):
            raise OverflowError("date value out of range")
        return write(tasks, events, now, may_create=may_create)

    monkeypatch.setattr(Tasks, "report", report)
    bodies = body(event("bad", "received")), body(event("a", "received"))
    assert batch_failures(queues.process(batch("x-reports", *bodies))) == ["message-0"]
    assert record(world, "a")
    assert refused(world) == []  # a faulty deployment may be undone
    last = batch("x-reports", *bodies, receive_counts={0: RECEIVES_BEFORE_REFUSAL, 1: 1})
    assert batch_failures(queues.process(last)) == []
    (kept,) = refused(world)
    assert [each["report"]["id"] for each in kept["reports"]] == ["bad"]
    assert "OverflowError" in kept["reports"][0]["problem"]


@pytest.mark.rule("5.report-times")
@pytest.mark.parametrize(
    ("moment", "counts"),
    [
        (NOW - timedelta(days=29), True),
        (NOW - timedelta(days=32), False),
        (NOW + timedelta(minutes=14), True),
        (NOW + timedelta(minutes=16), False),
    ],
)
def test_a_report_of_an_incredible_time_is_refused(
    world: MeshWorld, queues: ReportQueues, moment: datetime, counts: bool
) -> None:
    report = replace(event("t", "received"), at=format_time(moment))
    assert batch_failures(queues.process(batch("x-reports", body(report, event("o", "received"))))) == []
    assert (record(world) is not None, len(refused(world))) == (counts, int(not counts))
    assert record(world, "o")


@pytest.mark.rule("5.report-times")
@pytest.mark.parametrize(("minutes", "counts"), [(14, True), (16, False)])
def test_a_job_run_of_an_incredible_time_is_refused(
    world: MeshWorld, queues: ReportQueues, minutes: int, counts: bool
) -> None:
    """Its note would hide all later ones."""
    note = run_note((NOW + timedelta(minutes=minutes) - at(0)).total_seconds())
    report = event("t", "processing", run=note)
    assert batch_failures(queues.process(batch("x-reports", body(report)))) == []
    assert (record(world) is not None, len(refused(world))) == (counts, int(not counts))


@pytest.mark.rule("5.report-times")
def test_a_time_beyond_the_calendar_crashes_nothing(world: MeshWorld, queues: ReportQueues) -> None:
    report = replace(event("t", "received", created_at="0001-01-01T00:00:00.000000Z"), at="0001-01-01T00:00:00Z")
    assert batch_failures(queues.process(batch("x-reports", body(report, event("o", "received"))))) == []
    assert record(world, "o")
    (kept,) = refused(world)
    assert "at is 0001" in kept["reports"][0]["problem"]


@pytest.mark.rule("5.reports-of-the-sender")
@pytest.mark.parametrize("queue", ["x-reports", "x-ends"])
def test_a_stranger_reports_nothing(world: MeshWorld, queues: ReportQueues, queue: str) -> None:
    assert batch_failures(queues.process(batch(queue, body(event("t", "received", 1)), sender="AROASTRANGER"))) == []
    assert record(world) is None
    (kept,) = refused(world)
    assert kept["sender"] == "AROASTRANGER:asya-shop-session"
    what = "report an end" if queue == "x-ends" else "report about clean-flights"
    assert kept["reports"][0]["problem"] == f"a sender outside may not {what}"


@pytest.mark.rule("5.reports-of-the-sender")
def test_an_actor_reports_about_itself_alone(world: MeshWorld, queues: ReportQueues) -> None:
    own, other = held(event("own", "received", 1, actor="infer")), event("other", "received", 1, actor="post")
    queues.process(batch("x-reports", body(own, other), sender="AROAINFER"))
    assert (record(world, "own") is not None, record(world, "other")) == (True, None)
    (kept,) = refused(world)
    assert [each["problem"] for each in kept["reports"]] == ["infer may not report about post"]


@pytest.mark.rule("5.reports-of-the-sender")
def test_without_an_answer_about_the_sender_the_message_stays(
    world: MeshWorld, queues: ReportQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(**_: object) -> object:
        raise ClientError({"Error": {"Code": "InternalServerError", "Message": "on demand"}}, "GetItem")

    made = batch("x-reports", body(event("t", "received", 1)), sender="AROAOTHER")
    monkeypatch.setattr(world.dynamodb, "get_item", unavailable)
    assert len(batch_failures(queues.process(made))) == 1
    assert (record(world), refused(world)) == (None, [])


@pytest.mark.rule("12.redrive.reports")
@pytest.mark.parametrize(("sender", "counts"), [("AROAAPI", True), ("AROACOMPLETION", False)])
def test_the_gateway_alone_is_believed_about_the_first_sender(
    world: MeshWorld, queues: ReportQueues, sender: str, *, counts: bool
) -> None:
    made = batch("x-reports", body(event("t", "received", 1, actor="post")), sender=sender)
    made["Records"][0]["messageAttributes"] = {
        "asya-first-sender": {"stringValue": "AROAINFER", "dataType": "String"},
    }
    queues.process(made)
    # The first sender is infer, which may not report about post. x-completion may, whatever it says about others.
    assert (record(world) is None) == counts
    assert [each["sender"] for each in refused(world)] == (["AROAINFER"] if counts else [])
