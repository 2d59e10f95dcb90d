"""protocol §13: a batch of reports; errors name item and field, and affect no other item."""

import json
from typing import Any

import pytest

from asya.protocol.events import INLINE_RESULT_LIMIT, EventResult, Report, TaskEvent
from asya.tasks.received_reports import BATCH_LIMIT, BatchError, read_events

ROUTE = {"prev": [], "curr": "a", "next": ["b"]}
RUN = {"run_id": "r", "job_run_id": "j", "state": "RUNNING", "at": "2026-11-20T09:00:00Z", "envelopes": 1}
GOOD = {"id": "t", "status": "received", "at": "2026-11-20T09:00:00Z", "data": {"actor": "a", "route": ROUTE}}


def read(*items: object) -> list[Report | EventResult]:
    return read_events(json.dumps(items).encode())


def test_times_are_brought_into_one_form() -> None:
    data = {"deadline_at": "2026-11-20T12:00:00+01:00", "owner": "AIDA"}
    [event] = read({"id": "t", "status": "registered", "at": "2026-11-20T10:00:00.5+01:00", "data": data})
    assert isinstance(event, TaskEvent)
    assert (event.at, event.data.deadline_at) == ("2026-11-20T09:00:00.500000Z", "2026-11-20T11:00:00.000000Z")


def test_the_time_of_a_job_run_is_brought_into_one_form() -> None:
    [event] = read(
        GOOD | {"status": "processing", "data": {"route": ROUTE, "run": RUN | {"at": "2026-11-20T10:00:00+01:00"}}}
    )
    assert isinstance(event, TaskEvent)
    assert event.data.run is not None
    assert event.data.run.at == "2026-11-20T09:00:00.000000Z"


@pytest.mark.rule("13.inline-results")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"id": ""}, "id"),
        ({"id": "x" * 257}, "id"),
        ({"id": 7}, "id"),
        ({"id": None}, "id"),
        ({"status": "running"}, "status"),
        ({"status": None}, "status"),
        ({"type": "flight"}, "type"),
        ({"type": "fly", "data": [1]}, "data"),
        ({"type": "fly", "data": {"text": "x" * 66_000}}, "data"),
        ({"type": "fly", "data": {}, "sequence": -1}, "sequence"),
        ({"type": "fly", "data": {}, "at": "now"}, "at"),
        ({"at": "yesterday"}, "at"),
        ({"at": "2026-13-45T09:00:00Z"}, "at"),
        ({"at": "0001-01-01T00:00:00Z"}, "at"),
        ({"at": "2019-12-31T23:59:59Z"}, "at"),
        ({"at": "9999-12-31T23:59:59Z"}, "at"),
        ({"type": "fly", "data": {}, "at": "0001-01-01T00:00:00Z"}, "at"),
        ({"generation": -1}, "generation"),
        ({"generation": 10_000}, "generation"),
        ({"position": 1_000_000}, "position"),
        ({"position": "1"}, "position"),
        ({"attempt": 0}, "attempt"),
        ({"attempt": True}, "attempt"),
        ({"parent_id": ""}, "parent_id"),
        ({"root_id": "x" * 257}, "root_id"),
        ({"data": {"actor": "a"}}, "data.route"),
        ({"data": {"route": {"prev": [], "curr": "a"}}}, "data.route"),
        ({"data": {"route": ROUTE, "duration_ms": -1}}, "data.duration_ms"),
        ({"data": {"route": ROUTE, "message_size_kb": 1e300}}, "data.message_size_kb"),
        ({"data": {"route": ROUTE, "actor": "x" * 2000}}, "data.actor"),
        ({"data": {"route": ROUTE, "deadline_at": "soon"}}, "data.deadline_at"),
        ({"data": {"route": ROUTE, "result": "x" * INLINE_RESULT_LIMIT}}, "data.result"),
        ({"data": {"route": ROUTE, "error": {"type": "E"}}}, "data.error"),
        ({"data": {"route": ROUTE | {"next": ["x"] * 40_000}}}, "data.route"),
        ({"data": {"route": ROUTE, "run": RUN | {"run_id": "x" * 20_000}}}, "data.run"),
        ({"data": {"route": ROUTE, "run": RUN | {"at": "soon"}}}, "data.run.at"),
        ({"data": {"route": ROUTE, "run": RUN | {"at": "9999-12-31T23:59:59Z"}}}, "data.run.at"),
        ({"data": {"route": ROUTE, "result": "x" * 300_000}}, "bytes"),
    ],
)
def test_a_malformed_item_is_named_and_the_others_are_accepted(change: dict[str, Any], named: str) -> None:
    before, bad, after = read(GOOD, GOOD | change, GOOD)
    assert isinstance(before, TaskEvent)
    assert isinstance(after, TaskEvent)
    assert isinstance(bad, EventResult)
    assert bad.status == 400
    assert named in (bad.error or "").split(":")[0]
    assert bad.id in ("t", "")


@pytest.mark.parametrize("item", [None, 1, "x", [], {}, {"id": "t"}])
def test_items_that_are_no_events(item: object) -> None:
    [bad] = read(item)
    assert isinstance(bad, EventResult)
    assert bad.status == 400


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"null", b"[", b"[NaN]", b"\xff", b"[" * 100_000, b'["\xff"]x', b'["\\ud800"]']
)
def test_bodies_that_are_no_batches(body: bytes) -> None:
    with pytest.raises(BatchError):
        read_events(body)


def test_hostile_items_are_rejected_one_by_one() -> None:
    deep = b'{"id":"t","data":' + b"[" * 300 + b"]" * 300 + b"}"
    results = read_events(b"[" + deep + b',{"id":"\xff"}]')
    assert [result.status for result in results if isinstance(result, EventResult)] == [400] * 2


def test_too_many_items() -> None:
    with pytest.raises(BatchError, match=f"{BATCH_LIMIT + 1} items"):
        read(*[GOOD] * (BATCH_LIMIT + 1))


def test_error_texts_are_shortened_not_refused() -> None:
    error = {"type": "E", "message": "m" * 50_000, "traceback": "t" * 50_000, "mro": ["M"] * 99}
    [event] = read(GOOD | {"status": "failed", "data": {"error": error}})
    assert isinstance(event, TaskEvent)
    assert event.data.error is not None
    assert len(event.data.error.message) == 16 * 1024
    assert len(event.data.error.traceback.encode()) <= 16 * 1024
    assert len(event.data.error.mro) == 32


def test_an_end_with_a_long_route_arrives() -> None:
    """A report that is refused ends no task."""
    [event] = read(GOOD | {"status": "failed", "data": {"route": ROUTE | {"next": ["x"] * 40_000}}})
    assert isinstance(event, TaskEvent)
