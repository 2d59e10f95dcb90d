"""What cursors of lists tell their holders: nothing of other owners (`protocol §13`, lists)."""

import base64
import itertools
import json
from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.tasks.aws import index as task_index
from asya.tasks.aws import lists as task_lists
from tests.doubles.agents import result
from tests.doubles.gateway_functions import ADMIN, ALICE, MESH, Gateway, report, route_event
from tests.doubles.tasks import at

LIST = "GET /api/v1/mesh"
# Before and after Alice's `AIDAALICE`, which is within the keys of the index.
OWNERS = ("AIDAAAA", "AIDAALICE", "AIDABOB", "jwt:bob#https://login.example.com/")


@pytest.fixture(autouse=True)
def with_operators(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))


def start_tasks(gateway: Gateway, times: int, seconds: float) -> set[str]:
    """Each owner starts a task at each time; returns the ids of Alice's."""
    for number, (position, owner) in itertools.product(range(times), enumerate(OWNERS)):
        report(gateway, f"task-{position}-{number:02d}", "received", number * seconds, data={"owner": owner})
    return {f"task-1-{number:02d}" for number in range(times)}


def revealed(cursor: str) -> str:
    """Everything that the holder of a cursor can read in it."""
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[6:].decode()


def check(cursor: str) -> None:
    text = revealed(cursor)
    assert not any(owner in text for owner in OWNERS if owner != "AIDAALICE")
    assert "task-" not in text.replace("task-1-", "")


def pages(gateway: Gateway, limit: int) -> list[str]:
    found: list[str] = []
    query: dict[str, str] = {"limit": str(limit)}
    for _ in range(100):
        content: Any = gateway.api(route_event(LIST, ALICE, **query), at(0))[1]
        found += [item["id"] for item in content["items"]]
        if "next_cursor" not in content:
            return found
        check(content["next_cursor"])
        query["cursor"] = content["next_cursor"]
    pytest.fail("the list does not end")


@pytest.mark.rule("13.list.cursor")
@pytest.mark.parametrize("seconds", [0.0, 7.0, 3600.0])
@pytest.mark.parametrize(("limit", "budget", "size"), [(2, 25, 50), (2, 2, 6), (6, 2, 6)])
def test_a_cursor_names_only_tasks_and_principals_of_its_holder(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, seconds: float, limit: int, budget: int, size: int
) -> None:
    """A page may end at its limit, or after many tasks of others; in both cases the list goes on without loss."""
    monkeypatch.setattr(task_lists, "MAX_INDEX_PAGES", budget)
    monkeypatch.setattr(task_index, "MIN_PAGE_SIZE", size)
    mine = start_tasks(gateway, 6, seconds)
    found = pages(gateway, limit)
    assert sorted(found) == sorted(mine)


@pytest.mark.rule("13.list.cursor")
@pytest.mark.usefixtures("with_tools")
def test_a_page_token_of_agent2agent_names_only_those_too(gateway: Gateway) -> None:
    gateway.mesh = changed(gateway.mesh, operators=("arn:aws:iam::123456789012:role/Admin",))
    start_tasks(gateway, 4, 7.0)
    token = result(gateway, "ListTasks", {"pageSize": 2})["nextPageToken"]
    check(token)
    following = result(gateway, "ListTasks", {"pageSize": 2, "pageToken": token})
    assert [task["id"] for task in following["tasks"]] == ["task-1-01", "task-1-00"]


def test_cursors_of_operators_name_the_last_task(gateway: Gateway) -> None:
    start_tasks(gateway, 2, 7.0)
    content: Any = gateway.api(route_event(LIST, ADMIN, limit="3"), at(0))[1]
    assert json.loads(revealed(content["next_cursor"]))[2] == content["items"][-1]["id"]
