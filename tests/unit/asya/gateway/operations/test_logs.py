"""The lines that functions and job runs have logged, for operators (`protocol §13`, operations)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.function.aws import clients
from asya.gateway.operations.wiring import build_operations
from asya.protocol import names
from asya.protocol.envelope import Route
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.run_progress import RunNote
from asya.protocol.times import format_time
from tests.doubles.dispatching import start_run
from tests.doubles.operators import ALICE, NOW, RUN, OperatorCalls, operator_calls

TASK = "/api/v1/operations/logs/order-7"
NOTE = RunNote(run_id=RUN, job_run_id="run1", state="SUCCESS", at=format_time(NOW), envelopes=1, done=1)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[OperatorCalls]:
    with operator_calls(monkeypatch, build_operations, names.OPERATIONS) as made:
        yield made


def order(calls: OperatorCalls, run: RunNote | None = NOTE) -> None:
    """The task `order-7` at the heavy actor `clean`."""
    data = EventData(actor="clean", route=Route((), "clean", ("publish",)), attempt=1, run=run)
    at = format_time(NOW - timedelta(seconds=60))
    calls.report([TaskEvent(id="order-7", status="processing", at=at, position=0, data=data)])


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["line"] for item in items]


@pytest.mark.rule("13.operations.logs")
def test_a_task_has_the_lines_of_its_actors_by_time_and_those_of_its_job_runs(calls: OperatorCalls) -> None:
    start_run(calls.world, "order-7")
    order(calls)
    calls.log("x-sink", 1, {"message": "stored", "envelope_id": "order-7"})
    calls.log("clean", 2, {"message": "pending", "envelope_id": "order-7"})
    calls.log("publish", 2, {"message": "not on its way", "envelope_id": "order-7"})
    calls.upload("driver out\n", name="stdout.gz")
    calls.upload("executor err\nlast", "SPARK_EXECUTOR/2")
    (items,) = calls.pages(TASK)
    assert [(item["actor"], item.get("worker"), item.get("stream")) for item in items] == [
        ("clean", None, None),
        ("x-sink", None, None),
        ("clean", "driver", "stdout"),
        ("clean", "2", "stderr"),
        ("clean", "2", "stderr"),
    ]
    assert texts(items)[2:] == ["driver out", "executor err", "last"]
    assert items[2]["run_id"] == RUN
    assert texts(next(calls.pages(f"{TASK}?source=executor")))[2:] == ["executor err", "last"]


def test_the_actor_of_a_task_that_has_reported_its_end_alone_has_lines(calls: OperatorCalls) -> None:
    data = EventData(actor="publish", route=Route(("clean",), "publish", ()), reason="KeyError")
    at = format_time(NOW - timedelta(seconds=60))
    calls.report([TaskEvent(id="order-7", status="failed", at=at, position=1, data=data)])
    calls.log("publish", 2, {"message": "handler failed", "envelope_id": "order-7"})
    calls.log("clean", 3, {"message": "sent", "envelope_id": "order-7"})
    calls.log("x-dlq", 1, {"message": "dead letter", "envelope_id": "order-7"})
    assert [len(page) for page in calls.pages(TASK)] == [3]


@pytest.mark.rule("13.operations.logs.own")
def test_a_task_never_has_the_lines_of_a_task_whose_id_contains_its_own(calls: OperatorCalls) -> None:
    order(calls, run=None)
    for other in ("order-71", "my-order-7", "order-7-1"):
        calls.log("clean", 1, {"message": "secret", "envelope_id": other})
    calls.log("clean", 1, {"message": "own", "envelope_id": "order-7"})
    assert [["own" in line for line in texts(page)] for page in calls.pages(TASK)] == [[True]]


@pytest.mark.rule("13.operations")
@pytest.mark.parametrize("path", ["logs/order-7", "actors/clean/logs", f"runs/{RUN}/logs"])
def test_other_callers_are_refused_before_anything_is_read(calls: OperatorCalls, path: str) -> None:
    code, body = calls.get(f"/api/v1/operations/{path}", ALICE)
    assert (code, body["error"]["code"]) == (403, "forbidden")


@pytest.mark.rule("13.operations.cursor")
@pytest.mark.slow
def test_pages_lose_and_repeat_no_line(calls: OperatorCalls) -> None:
    start_run(calls.world, "order-7")
    order(calls)
    for number in range(5):
        calls.log("clean", 30 - number, {"message": str(number), "envelope_id": "order-7"})
        calls.log("x-sump", 20 - number, {"message": str(number), "envelope_id": "order-7"})
    calls.upload("".join(f"line {number}\n" for number in range(7)))
    pages = list(calls.pages(f"{TASK}?limit=3"))
    assert all(len(page) <= 3 for page in pages)
    ids = [item["id"] for page in pages for item in page]
    assert len(ids) == len(set(ids)) == 17
    code, first = calls.get(f"{TASK}?limit=3")
    assert code == 200
    code, body = calls.get(f"/api/v1/operations/runs/{RUN}/logs?cursor={first['next_cursor']}")
    assert (code, body["error"]["code"]) == (400, "invalid_cursor")


def test_an_actor_has_all_its_lines_of_the_last_hour(calls: OperatorCalls) -> None:
    calls.log("clean", 5, "printed\n")
    calls.log("clean", 4000, "old")
    path = "/api/v1/operations/actors/clean/logs"
    assert [texts(page) for page in calls.pages(path)] == [["printed"]]
    since = format_time(NOW - timedelta(hours=2)).replace("+", "%2B")
    assert [texts(page) for page in calls.pages(f"{path}?since={since}")] == [["old", "printed"]]
    assert [texts(page) for page in calls.pages("/api/v1/operations/actors/x-dlq/logs")] == [[]]
    assert calls.get("/api/v1/operations/actors/nobody/logs")[0] == 404


@pytest.mark.rule("11.clock")
def test_a_step_of_the_clock_has_its_own_lines_and_the_clock_has_all(calls: OperatorCalls) -> None:
    calls.log("x-dlq", 3, {"message": "dead letter", "queue": "asya-flights-clean-dlq"})
    calls.log("x-task-sweep", 2, {"message": "tasks timed out", "about": "x-dlq"})
    calls.log("x-clock", 1, "REPORT RequestId: 1 x-dlq")
    found = {
        name: [texts(page) for page in calls.pages(f"/api/v1/operations/actors/{name}/logs")]
        for name in ("x-dlq", "x-task-sweep", "x-pause-sweep", "x-clock")
    }
    assert {name: len(pages[0]) for name, pages in found.items()} == {
        "x-dlq": 1,
        "x-task-sweep": 1,
        "x-pause-sweep": 0,
        "x-clock": 3,
    }
    assert "dead letter" in found["x-dlq"][0][0]


def test_what_is_unknown_is_not_found(calls: OperatorCalls) -> None:
    assert calls.get("/api/v1/operations/logs/nobody")[0] == 404
    for run in (RUN, "asya.other.clean.0000000001", "x"):
        assert calls.get(f"/api/v1/operations/runs/{run}/logs")[0] == 404


def test_a_run_whose_record_has_expired_has_no_lines(calls: OperatorCalls) -> None:
    order(calls)
    assert [texts(page) for page in calls.pages(TASK)] == [[]]


@pytest.mark.parametrize(
    ("code", "status", "name"),
    [("ThrottlingException", 503, "unavailable"), ("InvalidParameterException", 400, "invalid_cursor")],
)
def test_a_failure_of_cloudwatch_is_told(
    calls: OperatorCalls, monkeypatch: pytest.MonkeyPatch, code: str, status: int, name: str
) -> None:
    def refuse(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": code, "Message": "x"}}, "FilterLogEvents")

    monkeypatch.setattr(clients.logs(), "filter_log_events", refuse)
    answered, body = calls.get("/api/v1/operations/actors/clean/logs")
    assert (answered, body["error"]["code"]) == (status, name)
