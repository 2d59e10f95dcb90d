"""Lists: own tasks newest first, children, timelines, cursors (`protocol §13`)."""

import json
from itertools import chain
from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.function.aws import clients
from asya.protocol.times import format_time
from asya.tasks.aws import lists as task_lists
from tests.doubles.gateway_functions import (
    ADMIN,
    ALICE,
    BOB,
    MESH,
    Gateway,
    recorded_event,
    report,
    route_event,
    signed_by,
    with_body,
)
from tests.doubles.tasks import at, hop, route_at

LIST = "GET /api/v1/mesh"


@pytest.fixture(autouse=True)
def with_operators(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))


def page(gateway: Gateway, iam: dict[str, str] = ADMIN, seconds: float = 0.0, route: str = LIST, **query: str) -> Any:
    status, content = gateway.api(route_event(route, iam, **query), at(seconds))
    assert status == 200, content
    return content


def ids(gateway: Gateway, *args: Any, **query: Any) -> list[str]:
    return [item["id"] for item in page(gateway, *args, **query)["items"]]


def everything(gateway: Gateway, iam: dict[str, str] = ADMIN, **query: str) -> list[list[str]]:
    pages, content = [], page(gateway, iam, 0.0, LIST, **query)
    while True:
        pages.append([item["id"] for item in content["items"]])
        if "next_cursor" not in content:
            return pages
        content = page(gateway, iam, 0.0, LIST, cursor=content["next_cursor"], **query)


@pytest.mark.rule("13.list")
def test_own_tasks_newest_first_and_everybodys_for_operators(gateway: Gateway) -> None:
    started = [
        gateway.api(signed_by(with_body(recorded_event("start-task")), iam), at(number))[1]["id"]
        for number, iam in enumerate((ALICE, BOB, ALICE, ADMIN))
    ]
    assert ids(gateway, ALICE) == [started[2], started[0]]
    assert ids(gateway, BOB) == [started[1]]
    assert ids(gateway) == started[::-1]
    assert page(gateway, {"userArn": "arn:aws:iam::123456789012:user/eve", "userId": "AIDAEVE"}) == {"items": []}


@pytest.mark.rule("13.list.cursor")
def test_pages_are_complete_without_repetition_over_hours_and_days(gateway: Gateway) -> None:
    made = [f"t{number:03d}" for number in range(27)]
    for number, task_id in enumerate(made):
        report(gateway, task_id, "received", number * 1000.0)
    pages = everything(gateway, limit="5")
    assert [len(each) for each in pages] == [5] * 5 + [2]
    assert list(chain(*pages)) == made[::-1]


@pytest.mark.rule("15.trace-id")
def test_a_timeline_names_the_trace_of_a_hop(gateway: Gateway) -> None:
    trace_id = "5759e988bd862e3fe1be46a994272793"
    data = {"actor": "inspect-dataset", "route": {"prev": [], "curr": "inspect-dataset", "next": []}}
    report(gateway, "t", "received", data=data | {"trace_id": trace_id})
    report(gateway, "t", "completed", 1.0, data=data)
    (entry,) = page(gateway, route="GET /api/v1/mesh/{id}/timeline", id="t")["items"]
    assert entry["trace_id"] == trace_id


@pytest.mark.slow
def test_tasks_of_the_same_time_are_all_listed(gateway: Gateway) -> None:
    for number in range(57):
        report(gateway, f"t{number}", "received")
    pages = everything(gateway, limit="15")
    assert sorted(chain(*pages)) == sorted(f"t{number}" for number in range(57))


@pytest.mark.rule("13.list.cursor")
def test_new_tasks_do_not_move_pages(gateway: Gateway) -> None:
    for number in range(4):
        report(gateway, f"t{number}", "received", number)
    first = page(gateway, limit="2")
    report(gateway, "t4", "received", 4)
    assert ids(gateway, cursor=first["next_cursor"]) == ["t1", "t0"]


@pytest.mark.rule("13.backstop.read", "13.list.status")
def test_by_status(gateway: Gateway) -> None:
    for number, end in enumerate(("succeeded", "failed", "canceled", "paused")):
        report(gateway, end, "received", number)
        report(gateway, end, end, number + 10)
    report(gateway, "running", "received", 20)
    pending = gateway.api(signed_by(with_body(recorded_event("start-task")), ALICE), at(21))[1]["id"]
    late = signed_by(with_body(recorded_event("start-task"), {"timeout": 5}), ALICE)
    overdue = gateway.api(late, at(22))[1]["id"]
    found = {status: ids(gateway, seconds=60, status=status) for status in (
        "pending", "running", "paused", "succeeded", "failed", "canceled"
    )}  # fmt: skip
    assert found == {
        "pending": [pending],
        "running": ["running"],
        "paused": ["paused"],
        "succeeded": ["succeeded"],
        "failed": [overdue, "failed"],
        "canceled": ["canceled"],
    }
    assert len(ids(gateway, seconds=60)) == 7


def test_a_short_page_continues_where_it_stopped(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_lists, "MAX_INDEX_PAGES", 2)
    gateway.api(signed_by(with_body(recorded_event("start-task")), ALICE), at(0))
    for hour in range(1, 9):
        report(gateway, f"t{hour}", "received", hour * 3600)
    pages = everything(gateway, ALICE)
    assert len(pages) > 3
    assert sum(map(len, pages)) == 1


def test_lists_show_no_results_and_no_tracebacks(gateway: Gateway) -> None:
    report(gateway, "t", "succeeded", data={"result": {"n": 1}})
    report(gateway, "u", "failed", 1, data={"error": {"type": "E", "message": "m" * 5000, "traceback": "t" * 900}})
    failed, succeeded = page(gateway)["items"]
    assert "result" not in succeeded
    assert (succeeded["status"], succeeded["progress_percent"]) == ("succeeded", 100)
    assert failed["error"] == {"type": "E", "message": "m" * 1024, "mro": [], "traceback": ""}


@pytest.mark.rule("9.children.list", "13.children")
@pytest.mark.slow
def test_children_newest_first(gateway: Gateway) -> None:
    report(gateway, "root", "received", data={"owner": "AIDAALICE"})
    for number in range(55):
        report(gateway, f"c{number:02d}", "received", number + 1, parent_id="root", root_id="root")
    report(gateway, "grandchild", "received", 99, parent_id="c00", root_id="root")
    route = "GET /api/v1/mesh/{id}/children"
    expected = [f"c{number:02d}" for number in range(55)][::-1]
    first = page(gateway, ALICE, route=route, id="root", limit="50")
    second = page(gateway, ALICE, route=route, id="root", limit="50", cursor=first["next_cursor"])
    assert [item["id"] for item in (*first["items"], *second["items"])] == expected
    assert ids(gateway, ALICE, parent="root", limit="100") == expected
    assert ids(gateway, parent="c00") == ["grandchild"]
    assert ids(gateway, BOB, parent="root") == []
    assert gateway.api(route_event(route, BOB, id="root"))[0] == 404
    assert ids(gateway, ALICE, parent="root", status="succeeded") == []


@pytest.mark.rule("13.timeline")
def test_the_timeline_of_a_task(gateway: Gateway) -> None:
    report(gateway, "t", "registered", data={"owner": "AIDAALICE"})
    for position in range(3):
        for event in hop("t", position):
            report(gateway, "t", event.status, position * 10 + {"received": 0, "processing": 1, "completed": 5}[event.status],
                   position=position, data=json.loads(json.dumps({
                       "actor": event.data.actor, "duration_ms": event.data.duration_ms,
                       "message_size_kb": event.data.message_size_kb,
                       "route": {"prev": route_at(position).prev, "curr": route_at(position).curr,
                                 "next": route_at(position).next}})))  # fmt: skip
    report(gateway, "t", "received", 100, generation=1)
    route = "GET /api/v1/mesh/{id}/timeline"
    content = page(gateway, ALICE, route=route, id="t")
    assert content["items"][1] == {
        "generation": 0,
        "position": 1,
        "attempt": 1,
        "actor": "clean-flights",
        "received_at": format_time(at(10)),
        "processing_at": format_time(at(11)),
        "completed_at": format_time(at(15)),
        "message_size_kb": 1.5,
        "duration_ms": 4000.0,
    }
    assert [(item["generation"], item["position"]) for item in content["items"]] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    first = page(gateway, ALICE, route=route, id="t", limit="3")
    assert len(first["items"]) == 3
    assert page(gateway, ALICE, route=route, id="t", limit="3", cursor=first["next_cursor"]) == {
        "items": content["items"][3:]
    }
    assert gateway.api(route_event(route, BOB, id="t"))[0] == 404
    assert gateway.api(route_event(route, ALICE, id="unknown"))[0] == 404


@pytest.mark.rule("13.errors")
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"limit": "٣"}, "limit"),
        ({"status": "done"}, "status"),
        ({"tool": ""}, "tool"),
        ({"since": "2h"}, "since"),
        ({"roots": "1"}, "roots"),
        ({"cursor": ""}, "cursor"),
        ({"cursor": "abc"}, "cursor"),
        ({"cursor": "é"}, "cursor"),
        ({"cursor": "x" * 5000}, "cursor"),
    ],
)
def test_invalid_queries_are_rejected_with_the_parameter(gateway: Gateway, query: dict[str, str], field: str) -> None:
    status, content = gateway.api(route_event(LIST, ADMIN, **query))
    assert (status, content["error"]["field"]) == (400, field)


@pytest.mark.rule("13.list.cursor")
def test_a_cursor_is_of_its_own_list_and_whole(gateway: Gateway) -> None:
    for number in range(3):
        report(gateway, f"t{number}", "received", number, parent_id="p")
    cursor = page(gateway, limit="1")["next_cursor"]
    for query in (
        {"cursor": cursor, "status": "running"},
        {"cursor": cursor, "parent": "p"},
        {"cursor": cursor, "tool": "order"},
        {"cursor": cursor, "roots": "true"},
        {"cursor": cursor, "until": "2026-11-20T09:00:00Z"},
        {"cursor": cursor[:-1]},
        {"cursor": cursor + "A"},
        {"cursor": "A" + cursor[1:]},
        {"cursor": cursor[:20] + ("A" if cursor[20] != "A" else "B") + cursor[21:]},
    ):
        assert gateway.api(route_event(LIST, ADMIN, **query))[0] == 400
    assert gateway.api(route_event("GET /api/v1/mesh/{id}/timeline", ADMIN, id="t0", cursor=cursor))[0] == 400


@pytest.mark.rule("13.list.writes")
def test_index_writes_per_task(gateway: Gateway) -> None:
    """As in docs/decisions/tasks-table.md: one entry per index, and no change at the end of a task that succeeds soon."""

    def entries(task_id: str) -> dict[str, str]:
        item = clients.dynamodb().get_item(
            TableName="asya-flights-tasks", Key={"pk": {"S": task_id}, "sk": {"S": "record"}}
        )["Item"]
        return {
            name: item[name]["S"]
            for name in ("listed_in", "listed_at", "child_of", "due_in", "waits_in")
            if name in item
        }

    started = gateway.api(signed_by(with_body(recorded_event("start-task"), {"timeout": 60}), ALICE))[1]["id"]
    born = entries(started)
    report(gateway, started, "received", 1)
    assert entries(started) == born
    report(gateway, started, "succeeded", 2)
    assert entries(started) == born
    assert set(born) == {"listed_in", "listed_at", "due_in"}
