"""Tasks of the deployed gateway (protocol §13): tools, lists, partials, cancellation and deadlines."""

from __future__ import annotations

import json
import time
from concurrent.futures import as_completed
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from asya.protocol import names
from asya.protocol.times import format_time
from asya.tasks.aws.partials import PartialStore
from tests.cloud.deployed_cloud import until
from tests.cloud.environment import environment, now
from tests.cloud.gateway_tasks import create_record, list_items, read_task, start, wait_for_end

if TYPE_CHECKING:
    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud


# --- tools, lists, timelines


@pytest.mark.rule("13.timeline", "13.tools.answer")
def test_a_tool_answers_with_its_result(alice: ApiCaller, operator: ApiCaller) -> None:
    status, content = alice.call("POST", "/tools/call", {"name": "say", "arguments": {"text": "hello"}})
    if status == 202:  # a busy machine exceeds the wait; the response has the id
        content |= wait_for_end(alice, content["id"])
    assert (content["status"], content["result"]) == ("succeeded", {"text": "hello"})

    def both_hops() -> list[Any] | None:
        hops = list_items(alice, f"/api/v1/mesh/{content['id']}/timeline")
        return hops if len(hops) == 2 and all("completed_at" in hop for hop in hops) else None

    # The end travels on another queue than the hops, and may come first (protocol §5).
    hops = until(both_hops, "the reports of both hops")
    assert [(hop["position"], hop["actor"]) for hop in hops] == [(0, "echo"), (1, "echo")]
    assert all(hop["received_at"] <= hop["completed_at"] for hop in hops)
    assert alice.call("POST", "/tools/call", {"name": "say", "arguments": {"text": ""}})[0] == 400
    assert alice.call("POST", "/tools/call", {"name": "shout", "arguments": {}})[0] == 404


@pytest.mark.rule("13.list")
def test_callers_list_their_own_tasks_newest_first(alice: ApiCaller, bob: ApiCaller, operator: ApiCaller) -> None:
    alices = [start(alice, "echo", {"n": number}) for number in range(5)]
    bobs = start(bob, "echo")
    for task_id in (*alices, bobs):
        wait_for_end(operator, task_id)
    assert [each["id"] for each in list_items(alice, "/api/v1/mesh", limit="2")][:5] == alices[::-1]
    assert {each["id"] for each in list_items(bob, "/api/v1/mesh")} == {bobs}
    all_tasks = [each["id"] for each in list_items(operator, "/api/v1/mesh", status="succeeded")]
    assert all_tasks[:6] == [bobs, *alices[::-1]]
    assert bobs not in {each["id"] for each in list_items(alice, "/api/v1/mesh", status="succeeded")}


@pytest.mark.rule("14.api.slash")
def test_14_legacy_clients_write_a_slash_before_the_query(alice: ApiCaller) -> None:
    status, content = alice.call("POST", "/api/v1/mesh/", {"payload": {"a": 1}}, actor="echo")
    assert status == 201
    assert wait_for_end(alice, content["id"])["status"] == "succeeded"
    assert content["id"] in {each["id"] for each in list_items(alice, "/api/v1/mesh/", status="succeeded")}


@pytest.mark.rule("13.children")
def test_children_are_listed_page_by_page(alice: ApiCaller, bob: ApiCaller) -> None:
    root = start(alice, "split", {"parts": 12})
    wait_for_end(alice, root)
    children = until(
        lambda: items if len(items := list_items(alice, f"/api/v1/mesh/{root}/children", limit="5")) == 11 else None,
        "all children to be known",
    )
    assert {(child["parent_id"], child["root_id"]) for child in children} == {(root, root)}
    assert bob.call("GET", f"/api/v1/mesh/{root}/children")[0] == 404


@pytest.mark.rule("13.failures", "13.list.filters", "13.tool")
def test_the_failures_of_a_tool_are_listed_and_grouped(alice: ApiCaller, bob: ApiCaller, operator: ApiCaller) -> None:
    since = format_time(now())
    request = {"name": "rest", "arguments": {"seconds": "many"}}
    failed = [caller.call("POST", "/tools/call", request)[1]["id"] for caller in (alice, bob, alice)]
    other = start(alice, "slow", {"seconds": "many"})
    for task_id in (*failed, other):
        assert wait_for_end(operator, task_id)["status"] == "failed"

    def listed(caller: ApiCaller, **query: str) -> list[str]:
        return [each["id"] for each in list_items(caller, "/api/v1/mesh", status="failed", since=since, **query)]

    def groups(caller: ApiCaller, **query: str) -> list[tuple[str, int]]:
        items = list_items(caller, "/api/v1/operations/failures", since=since, **query)
        return [(each["actor"], each["count"]) for each in items]

    def whole() -> bool | None:
        return sorted(listed(operator)) == sorted((*failed, other)) or None

    until(whole, "the index to have the ends")
    assert listed(alice, tool="rest", limit="1") == [failed[2], failed[0]]
    assert listed(alice, error="TypeError", actor="slow") == [other, failed[2], failed[0]]
    assert listed(operator, tool="rest", owner=read_task(bob, failed[1])["owner"]) == [failed[1]]
    assert groups(operator, tool="rest") == [("slow", 3)]
    assert groups(alice) == [("slow", 3)]
    assert (groups(bob, tool="rest"), groups(bob, tool="say")) == ([("slow", 1)], [])


# --- FLY


@pytest.mark.rule("7.FLY.soon")
def test_partials_are_stored_while_the_handler_runs(gateway: DeployedCloud, alice: ApiCaller) -> None:
    task_id = start(alice, "talk", {"messages": 20, "seconds": 4})
    table = names.table_name("gateway", "tasks")
    partials = PartialStore(gateway.mesh.connection.dynamodb(), table, time.sleep)

    def poll() -> list[Any] | None:
        batches = list(partials.read(task_id, now()))
        messages = [message for batch in batches for message in batch.messages]
        return messages if len(messages) == 20 else None

    messages = until(poll, "all partials")
    # Partials are written before the reports that came with them.
    assert read_task(alice, task_id)["status"] in {"pending", "running"}
    assert [message.sequence for message in messages] == list(range(20))
    assert [json.loads(bytes(message.data))["number"] for message in messages] == list(range(20))
    assert wait_for_end(alice, task_id)["status"] == "succeeded"


# --- cancellation and deadlines


@pytest.mark.rule("13.cancel")
def test_a_canceled_task_stays_canceled(gateway: DeployedCloud, alice: ApiCaller, bob: ApiCaller) -> None:
    signal = f"go/{uuid4()}"
    task_id = start(alice, "slow", {"until": signal})
    until(lambda: read_task(alice, task_id)["status"] == "running" or None, "the task to run")
    assert bob.call("DELETE", f"/api/v1/mesh/{task_id}")[0] == 404
    assert alice.call("DELETE", f"/api/v1/mesh/{task_id}") == (204, None)
    assert read_task(alice, task_id)["status"] == "canceled"
    gateway.mesh.upload(signal, b"now")
    # The handler is not interrupted, but its end does not change the task.
    until(lambda: gateway.message_count(names.queue_name("gateway", "slow")) == 0 or None, "the handler to be done")
    until(lambda: gateway.message_count(names.queue_name("gateway", "x-sink")) == 0 or None, "x-sink to be done")
    assert read_task(alice, task_id)["status"] == "canceled"
    assert alice.call("DELETE", f"/api/v1/mesh/{task_id}") == (204, None)


@pytest.mark.rule("13.cancel.children")
def test_children_are_canceled_with_their_root(operator: ApiCaller, gateway: DeployedCloud) -> None:
    root = str(uuid4())
    route = {"prev": [], "curr": "split", "next": ["slow", "slow", "slow", "echo"]}
    signal = f"go/{root}"
    payload = {"parts": 3, "until": signal}
    gateway.send_raw("split", json.dumps({"id": root, "route": route, "payload": payload}))
    until(lambda: children_of(operator, root) or None, "a child to be known")
    assert operator.call("DELETE", f"/api/v1/mesh/{root}")[0] == 204
    gateway.mesh.upload(signal, b"now")
    # Running handlers are not interrupted. The later hops do not run, even for children that are reported later.
    children = until(
        lambda: items if len(items := children_of(operator, root)) == 2 else None, "all children to be known"
    )
    tasks = [wait_for_end(operator, child["id"]) for child in (*children, {"id": root})]
    assert {each["status"] for each in tasks} == {"canceled"}


def children_of(caller: ApiCaller, root: str) -> list[Any]:
    status, content = caller.call("GET", "/api/v1/mesh", parent=root)
    assert status == 200
    return list(content["items"])


@pytest.mark.rule("13.backstop.written")
def test_the_sweep_stores_the_end_of_an_overdue_task(gateway: DeployedCloud, operator: ApiCaller) -> None:
    task_id = create_record(gateway, age=timedelta(minutes=2), deadline=timedelta(minutes=-1))
    assert (read_task(operator, task_id)["status"], read_task(operator, task_id)["reason"]) == ("failed", "Timeout")
    gateway.run_scheduled(names.TASK_SWEEP)
    table = gateway.mesh.connection.dynamodb()
    key: Any = {"pk": {"S": task_id}, "sk": {"S": "record"}}
    item = table.get_item(TableName=names.table_name("gateway", "tasks"), Key=key, ConsistentRead=True)["Item"]
    assert item["status"]["S"] == "failed"


# --- waiting calls


@pytest.mark.rule("13.waits")
def test_13_waits_a_caller_waits_in_three_calls_and_not_in_a_fourth(
    alice: ApiCaller, operator: ApiCaller, gateway: DeployedCloud
) -> None:
    """The mesh file says `long_polls_per_caller: 3`."""
    signal = f"go/{uuid4()}"
    request = {"name": "rest", "arguments": {"until": signal}}
    with environment().threads(4) as pool:
        calls = [pool.submit(alice.call, "POST", "/tools/call", request) for _ in range(4)]
        refused = next(as_completed(calls))
        status, content = refused.result()
        assert (status, content["error"]["code"]) == (429, "too_many_long_polls")
        # Another caller waits all the same.
        assert operator.call("POST", "/tools/call", {"name": "say", "arguments": {"text": "hello"}})[0] in (200, 202)
        gateway.mesh.upload(signal, b"now")
        answers = [call.result() for call in calls if call is not refused]
    assert all(status in (200, 202) for status, _ in answers)
    assert len({content["id"] for _, content in answers}) == 3
    # Their permits are free again.
    assert alice.call("POST", "/tools/call", {"name": "say", "arguments": {"text": "hello"}})[0] in (200, 202)
