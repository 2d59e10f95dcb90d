"""protocol §13: the limits of reports keep every item of a hop below the 400 KB of DynamoDB, so no report waits for ever."""

import json
from typing import Any

import msgspec
import pytest

from asya.protocol import states
from asya.protocol.events import COUNT_LIMIT, TaskEvent
from asya.protocol.hops import hop_records
from asya.protocol.ids import ID_LIMIT
from asya.tasks.aws.items import put_hops
from asya.tasks.hop_groups import hop_groups
from asya.tasks.received_reports import NUMBER_LIMIT, ROUTE_LIMIT, RUN_LIMIT, TEXT_LIMIT, read_events
from asya.testing.dynamo.values import ITEM_LIMIT, item_bytes

TIME = "2026-11-20T09:00:00.000000+14:00"
# Texts whose bytes in UTF-8, or whose escapes in JSON, are the longest for a character.
WIDE, ESCAPED = "\U0001f6eb", "\x01"


def filled(limit: int, make: Any) -> Any:
    """The largest `make(n)` whose JSON has at most `limit` bytes."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(msgspec.json.encode(make(middle))) <= limit else (low, middle - 1)
    return make(low)


ROUTES = {
    "many without a name": lambda n: {"prev": [], "curr": "", "next": [""] * n},
    "many before, without a name": lambda n: {"prev": [""] * n, "curr": "", "next": []},
    "many with short names": lambda n: {"prev": [], "curr": "a", "next": ["a"] * n},
    "one long name": lambda n: {"prev": [], "curr": "a" * n, "next": []},
    "wide characters": lambda n: {"prev": [], "curr": "", "next": [WIDE * n]},
    "escapes": lambda n: {"prev": [ESCAPED * 200], "curr": "", "next": [ESCAPED * n]},
}
RUNS = {
    "stages": lambda n: {"stages": [{"stage": 0}] * n},
    "a name": lambda n: {"run_id": WIDE * n},
}


def largest_reports(route: Any, run: Any, text: str) -> list[TaskEvent]:
    """Three reports of a hop and its problem, each at the limits of all members."""
    base = {"run_id": "r", "job_run_id": "j", "state": "RUNNING", "at": TIME, "envelopes": 10**18}
    data = {
        "actor": text * TEXT_LIMIT,
        "route": filled(ROUTE_LIMIT, route),
        "attempt": COUNT_LIMIT,
        "message_size_kb": NUMBER_LIMIT - 0.123,
        "duration_ms": NUMBER_LIMIT - 0.123,
        "run": filled(RUN_LIMIT, lambda n: base | run(n)),
    }
    problem = {"type": text * TEXT_LIMIT, "message": text * TEXT_LIMIT}
    report = {"id": "x" * ID_LIMIT, "at": TIME, "generation": 9_999, "position": COUNT_LIMIT, "attempt": COUNT_LIMIT}
    reports = [report | {"status": status, "data": data} for status in sorted(states.PROGRESS)]
    reports.append(report | {"status": "completed", "data": data | {"problem": problem}})
    # One by one: together they may be more than a request.
    read = [event for each in reports for event in read_events(json.dumps([each], ensure_ascii=False).encode())]
    events = [event for event in read if isinstance(event, TaskEvent)]
    assert len(events) == len(reports), read
    return events


@pytest.mark.rule("13.event-data")
@pytest.mark.parametrize(("run", "text"), [(RUNS["stages"], WIDE), (RUNS["a name"], ESCAPED)], ids=["stages", "name"])
@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES.keys())
def test_the_largest_reports_of_a_hop_make_items_that_dynamodb_stores(route: Any, run: Any, text: str) -> None:
    events = largest_reports(route, run, text)
    records = [*hop_records(events), *(record for each in events for record in hop_records([each]))]
    assert {record.stage for record in records} == {"received", "start", "done", "problem"}
    for group in [*((record,) for record in records), *hop_groups(hop_records(events))]:
        assert item_bytes(put_hops(group, 10**10).request("tasks")["Item"]) < ITEM_LIMIT // 2
