"""Job runs, for operators: pages, envelopes, verdicts and cost (`protocol §13`, operations)."""

from collections.abc import Iterator
from typing import Any

import pytest

from asya.gateway.operations import runs
from asya.gateway.operations.wiring import build_operations
from asya.protocol import names
from tests.doubles.dispatching import start_run
from tests.doubles.heavy import done_result, failed_result
from tests.doubles.operators import ALICE, RUN, OperatorCalls, operator_calls
from tests.unit.asya_cli.job.conftest import end_run

RUNS = "/api/v1/operations/runs"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[OperatorCalls]:
    with operator_calls(monkeypatch, build_operations, names.OPERATIONS) as made:
        yield made


def end_runs(calls: OperatorCalls, count: int) -> None:
    for number in range(1, count + 1):
        start_run(calls.world, f"e{number}")
        calls.world.write_results(number, [done_result(0, 1)])
        end_run(calls.world, number)


def numbers(items: list[dict[str, Any]]) -> list[int]:
    return [int(item["run_id"][-1]) for item in items]


@pytest.mark.rule("13.operations.runs")
@pytest.mark.slow
def test_open_runs_come_first_and_pages_lose_and_repeat_none(calls: OperatorCalls) -> None:
    end_runs(calls, 5)
    start_run(calls.world, "open")
    pages = [numbers(page) for page in calls.pages(f"{RUNS}?limit=2")]
    assert pages == [[6, 5, 4], [3, 2], [1]]
    assert [numbers(page) for page in calls.pages(f"{RUNS}?actor=stats")] == [[]]
    code, body = calls.get(f"{RUNS}?limit=2")
    assert code == 200
    assert body["items"][1]["dollars"] == pytest.approx(0.5 * 0.042094 + 2 * 0.004628)
    assert "list price of ARM64" in body["prices"]
    assert calls.get(f"{RUNS}?actor=clean&cursor={body['next_cursor']}")[1]["error"]["code"] == "invalid_cursor"
    assert calls.get(f"{RUNS}?actor=publish")[0] == 404


@pytest.mark.rule("13.operations.runs.one")
@pytest.mark.slow
def test_a_run_has_its_envelopes_in_pages_and_says_who_is_charged(calls: OperatorCalls) -> None:
    start_run(calls.world, "a", "b")
    calls.world.write_results(1, [done_result(0, 1), failed_result(1, message="x" * 5000)])
    end_run(calls.world, 1)
    code, body = calls.get(f"{RUNS}/{RUN}?limit=1")
    assert (code, body["actor"], body["state"], body["verdict"]) == (
        200,
        "clean",
        "partly retried",
        "every envelope has a result (1 succeeded, 1 retried)",
    )
    assert (body["emr_state"], body["outcomes"]) == ("SUCCESS", {"succeeded": 1, "retried": 1})
    (line,) = calls.get(RUNS)[1]["items"]
    assert (line["state"], line["emr_state"], line["outcomes"]) == (body["state"], body["emr_state"], body["outcomes"])
    assert [(line["id"], line["outcome"]) for line in body["members"]] == [("a", "succeeded")]
    code, rest = calls.get(f"{RUNS}/{RUN}?limit=1&cursor={body['next_cursor']}")
    assert [(line["id"], line["outcome"], len(line["error"])) for line in rest["members"]] == [("b", "failed", 1024)]
    assert (code, rest["next_cursor"]) == (200, None)
    assert rest["log_uri"].endswith("/SPARK_DRIVER/stderr.gz")


def test_large_results_are_not_read(calls: OperatorCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    start_run(calls.world, "a", "b")
    calls.world.write_results(1, [done_result(0, 1), done_result(1, 1)])
    monkeypatch.setattr(runs, "_RESULT_BYTES", 10)
    code, body = calls.get(f"{RUNS}/{RUN}")
    assert (code, {line["outcome"] for line in body["members"]}) == (200, {"has a result"})
    assert body["problem"] == "the results are too large to be read here"


@pytest.mark.rule("13.operations")
@pytest.mark.parametrize("path", [RUNS, f"{RUNS}/{RUN}"])
def test_other_callers_are_refused(calls: OperatorCalls, path: str) -> None:
    assert calls.get(path, ALICE)[0] == 403


@pytest.mark.parametrize(("path", "status"), [(f"{RUNS}/{RUN}", 404), (f"{RUNS}/x", 404), (f"{RUNS}?limit=0", 400)])
def test_what_is_unknown_or_wrong_is_refused(calls: OperatorCalls, path: str, status: int) -> None:
    assert calls.get(path)[0] == status
