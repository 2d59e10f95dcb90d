"""Groups of failed tasks over HTTP (`protocol §13.failures`)."""

from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.api_call import ApiCall
from asya.capabilities.dead_letters.http_calls import FAILURES as FAILURES_CALL
from asya.tasks.aws import failure_groups
from asya.tasks.http_calls import TASKS
from tests.doubles.gateway_functions import ADMIN, ALICE, BOB, MESH, Gateway, report, route_event
from tests.doubles.tasks import at

FAILURES = FAILURES_CALL.route


@pytest.fixture(autouse=True)
def with_failures(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))
    for number, (owner, kind) in enumerate(
        (("AIDAALICE", "KeyError"), ("AIDABOB", "KeyError"), ("AIDABOB", "Timeout"))
    ):
        data = {"owner": owner, "actor": "publish-report"}
        report(gateway, f"t{number}", "registered", number * 4_000.0, data=data)
        error = {"error": {"type": kind, "message": f"order {number}"}, "reason": "RuntimeError"}
        report(gateway, f"t{number}", "failed", number * 4_000.0 + 1, data=data | error)


def groups(gateway: Gateway, iam: dict[str, str] = ADMIN, **query: str) -> Any:
    status, content = gateway.operations(route_event(FAILURES, iam, **query), at(20_000))
    assert status == 200, content
    return content


@pytest.mark.rule("13.failures", "13.operators")
def test_operators_group_every_task_and_others_their_own(gateway: Gateway) -> None:
    whole = {
        "actor": "publish-report",
        "error": "KeyError: order #",
        "count": 2,
        "first": "2026-11-20T09:00:00.000000Z",
        "last": "2026-11-20T10:06:40.000000Z",
        "example": "t1",
    }
    assert groups(gateway)["items"][0] == whole
    assert [group["count"] for group in groups(gateway)["items"]] == [2, 1]
    assert groups(gateway, ALICE) == {"items": [whole | {"count": 1, "last": whole["first"], "example": "t0"}]}
    assert [group["example"] for group in groups(gateway, BOB)["items"]] == ["t1", "t2"]


@pytest.mark.rule("13.failures", "13.list.filters")
def test_groups_have_the_filters_of_lists(gateway: Gateway) -> None:
    assert [group["example"] for group in groups(gateway, error="order #", since="2026-11-20T10:30:00Z")["items"]] == [
        "t2"
    ]
    assert [group["example"] for group in groups(gateway, owner="AIDAALICE")["items"]] == ["t0"]
    assert groups(gateway, tool="analyse") == groups(gateway, actor="inspect-dataset") == {"items": []}


@pytest.mark.rule("13.list.filters", "13.operators")
@pytest.mark.parametrize("call", [FAILURES_CALL, TASKS], ids=lambda call: call.route)
def test_only_operators_select_by_owner(gateway: Gateway, call: ApiCall) -> None:
    assert gateway.call_function(call.function, route_event(call.route, ADMIN, owner="AIDABOB"))[0] == 200
    status, content = gateway.call_function(call.function, route_event(call.route, ALICE, owner="AIDABOB"))
    assert (status, content["error"]["code"], content["error"]["field"]) == (403, "forbidden", "owner")


@pytest.mark.rule("13.failures.pages", "13.list.cursor")
def test_pages_go_on_and_a_cursor_belongs_to_its_query(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_groups, "MAX_KEYS", 1)
    first = groups(gateway)
    assert [group["example"] for group in first["items"]] == ["t2"]
    second = groups(gateway, cursor=first["next_cursor"])
    assert [group["example"] for group in second["items"]] == ["t1"]
    for query in ({"error": "KeyError"}, {"since": "2026-11-20T09:00:00Z"}, {"owner": "AIDABOB"}):
        status, content = gateway.operations(route_event(FAILURES, ADMIN, cursor=first["next_cursor"], **query))
        assert (status, content["error"]["code"]) == (400, "invalid_cursor")
