"""Tests the gateway (protocol §13) on the deployed mesh, with IAM enforced."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from asya.protocol import names
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.partials import PartialStore
from tests.cloud import callers
from tests.cloud.deployed_cloud import until
from tests.cloud.stream_clients import StreamClient

if TYPE_CHECKING:
    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

FULL = bool(os.environ.get("ASYA_FULL_SIZE"))
TERMINAL = {"succeeded", "failed", "canceled"}


def start(caller: ApiCaller, actor: str, payload: object = None, **body: object) -> str:
    status, content = caller.call("POST", "/api/v1/mesh", {"payload": payload, **body}, actor=actor)
    assert status == 201, content
    return str(content["id"])


def read_task(caller: ApiCaller, task_id: str) -> Any:
    status, content = caller.call("GET", f"/api/v1/mesh/{task_id}")
    assert status == 200, content
    return content


def wait_for_end(caller: ApiCaller, task_id: str) -> Any:
    def poll() -> Any:
        task = read_task(caller, task_id)
        return task if task["status"] in TERMINAL else None

    return until(poll, f"task {task_id} to end")


def list_items(caller: ApiCaller, path: str, **query: str) -> list[Any]:
    """Reads all pages of a list."""
    items: list[Any] = []
    while True:
        status, content = caller.call("GET", path, **query)
        assert status == 200, content
        items += content["items"]
        if "next_cursor" not in content:
            return items
        query["cursor"] = content["next_cursor"]


# --- tools, lists, timelines


@pytest.mark.rule("13.timeline", "13.tools.answer")
def test_a_tool_answers_with_its_result(alice: ApiCaller, operator: ApiCaller) -> None:
    status, content = alice.call("POST", "/tools/call", {"name": "say", "arguments": {"text": "hello"}})
    if status == 202:  # a busy machine exceeds the wait; the response has the id
        content |= wait_for_end(alice, content["id"])
    assert (content["status"], content["result"]) == ("succeeded", {"text": "hello"})
    hops = list_items(alice, f"/api/v1/mesh/{content['id']}/timeline")
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


# --- FLY


@pytest.mark.rule("7.FLY.soon")
def test_partials_are_stored_while_the_handler_runs(gateway: DeployedCloud, alice: ApiCaller) -> None:
    task_id = start(alice, "talk", {"messages": 20, "seconds": 4})
    table = names.table_name("gateway", "tasks")
    partials = PartialStore(gateway.mesh.connection.dynamodb(), table, time.sleep)

    def poll() -> list[Any] | None:
        batches = list(partials.read(task_id, datetime.now(UTC)))
        messages = [message for batch in batches for message in batch.messages]
        return messages if len(messages) == 20 else None

    messages = until(poll, "all partials")
    assert read_task(alice, task_id)["status"] == "running"
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


def create_record(gateway: DeployedCloud, *, age: timedelta = timedelta(0), deadline: timedelta | None = None) -> str:
    """Stores the record of a running task without an envelope; returns its id."""
    now = datetime.now(UTC)
    created_at = format_time(now - age)
    record = TaskRecord(
        id=str(uuid4()),
        status="running",
        created_at=created_at,
        updated_at=created_at,
        deadline_at=format_time(now + deadline) if deadline is not None else None,
    )
    store = DynamoTaskStore(gateway.client("dynamodb"), names.table_name("gateway", "tasks"), 86400.0)
    store.put_record(record, None, now)
    return record.id


@pytest.mark.rule("13.backstop.written")
def test_the_sweep_stores_the_end_of_an_overdue_task(gateway: DeployedCloud, operator: ApiCaller) -> None:
    task_id = create_record(gateway, age=timedelta(minutes=2), deadline=timedelta(minutes=-1))
    assert (read_task(operator, task_id)["status"], read_task(operator, task_id)["reason"]) == ("failed", "Timeout")
    function = names.function_name("gateway", names.TASK_SWEEP)
    response = gateway.client("lambda").invoke(FunctionName=function, Payload=b"{}")
    assert "FunctionError" not in response, response["Payload"].read()
    table = gateway.mesh.connection.dynamodb()
    key: Any = {"pk": {"S": task_id}, "sk": {"S": "record"}}
    item = table.get_item(TableName=names.table_name("gateway", "tasks"), Key=key, ConsistentRead=True)["Item"]
    assert item["status"]["S"] == "failed"


# --- many reports at once


@pytest.mark.rule("13.order", "13.progress.never-back", "13.stream.id")
def test_shuffled_and_duplicate_reports_give_the_same_task(gateway: DeployedCloud, operator: ApiCaller) -> None:
    """12 tasks (50 in full size) get 200 reports each: shuffled, with duplicates, over several connections.

    Threads watch the progress. Clients with short connections follow two tasks, whose final reports are last.
    """
    rng = random.Random(7)
    tasks = [create_record(gateway) for _ in range(50 if FULL else 12)]
    clients = [StreamClient(operator, task_id) for task_id in (tasks[-1], tasks[-1], tasks[-2])]
    actors = [f"actor-{number}" for number in range(65)]
    now = datetime.now(UTC)
    reports = [report for task_id in tasks for report in reports_of(task_id, actors, now)]
    rng.shuffle(reports)
    ends = [each for each in reports if each["id"] in tasks[-2:] and each["status"] == "succeeded"]
    count = len(reports)
    reports = [each for each in reports if each not in ends]
    batches = [reports[first : first + 250] for first in range(0, len(reports), 250)]
    progress: dict[str, list[int]] = {task_id: [] for task_id in tasks[-4:]}
    done = threading.Event()

    def watch(task_id: str) -> None:
        while not done.is_set():
            progress[task_id].append(read_task(operator, task_id)["progress_percent"])

    def follow(client: StreamClient) -> None:
        limits = random.Random(client.task_id)
        while client.connect(limit=limits.randint(1, 80)):
            pass

    def send(batch: list[Any]) -> None:
        pending = batch
        while pending:
            status, content = operator.call("POST", "/api/v1/mesh/events", pending)
            assert status == 200, content
            pending = [each for each, item in zip(pending, content["items"], strict=True) if item["status"] != 204]

    with ThreadPoolExecutor(15) as pool:
        watchers = [pool.submit(watch, task_id) for task_id in progress]
        watchers += [pool.submit(follow, client) for client in clients]
        list(pool.map(send, batches))
        send(ends)
        done.set()
        for each in watchers:
            each.result()
    assert count == 200 * len(tasks)
    for task_id in tasks:
        task = read_task(operator, task_id)
        assert (task["status"], task["progress_percent"], task["result"]) == ("succeeded", 100, {"of": task_id})
    assert all(percents == sorted(percents) for percents in progress.values())
    # On a busy machine, some watchers read only after all reports, but not all of them.
    assert min(min(percents) for percents in progress.values()) < 100
    for client in clients:
        assert_complete_stream(client, len(actors))


def assert_complete_stream(client: StreamClient, hops: int) -> None:
    """Checks that the client got each status once, and that progress never decreased."""
    statuses = [(each["data"]["position"], each["data"]["step"]) for each in client.events if "step" in each["data"]]
    steps = ("completed", "processing", "received")
    assert sorted(statuses) == [(position, step) for position in range(hops) for step in steps]
    percents = [each["data"]["progress_percent"] for each in client.events]
    assert percents == sorted(percents)
    assert [each["event"] for each in client.events].count("final") == 1
    assert (client.events[-1]["event"], percents[-1]) == ("final", 100)
    assert client.connections > 2


def reports_of(task_id: str, actors: list[str], now: datetime) -> list[Any]:
    """200 reports: three for each of 65 hops, the final one, and four duplicates."""
    reports: list[Any] = []
    for position, actor in enumerate(actors):
        data = {"actor": actor, "route": {"prev": actors[:position], "curr": actor, "next": actors[position + 1 :]}}
        for number, status in enumerate(("received", "processing", "completed")):
            at = format_time(now + timedelta(seconds=position * 3 + number))
            reports.append({"id": task_id, "status": status, "at": at, "position": position, "data": data})
    end = {"actor": actors[-1], "result": {"of": task_id}}
    at = format_time(now + timedelta(seconds=500))
    reports.append({"id": task_id, "status": "succeeded", "at": at, "position": len(actors), "data": end})
    return [*reports, *reports[:3], reports[-1]]


# --- permissions


@pytest.mark.rule("13.owner")
def test_the_task_of_another_owner_is_not_found(alice: ApiCaller, bob: ApiCaller) -> None:
    task_id = start(alice, "echo")
    path = f"/api/v1/mesh/{task_id}"
    for method, suffix in (
        ("GET", ""), ("GET", "/timeline"), ("GET", "/children"), ("GET", "/events"), ("DELETE", ""), ("POST", "/resume"),
        ("POST", "/replay"), ("POST", "/stream-token"),
    ):  # fmt: skip
        assert bob.call(method, path + suffix, {} if method == "POST" else None)[0] == 404, method + suffix
    assert bob.call("GET", f"/envelopes/{task_id}")[0] == bob.call("GET", f"/jobs/{task_id}")[0] == 404
    assert bob.call("POST", path + "/events", {"status": "succeeded"})[0] == 403
    assert bob.call("POST", path + "/reopen", {})[0] == 403
    assert wait_for_end(alice, task_id)["status"] == "succeeded"


@pytest.mark.rule("13.signed")
def test_unsigned_calls_are_refused_except_public_ones(gateway: DeployedCloud, alice: ApiCaller) -> None:
    anonymous = callers.anonymous(gateway)
    document = alice.call("GET", "/openapi.json")[1]
    for path, operations in document["paths"].items():
        for method in operations:
            expected = 200 if path in ("/health", "/.well-known/agent-card.json") else 403
            body: object = {} if method == "post" else None
            assert anonymous.call(method.upper(), path.replace("{id}", "some-id"), body)[0] == expected, path


@pytest.mark.rule("13.roles")
def test_an_actors_role_may_only_post_reports(gateway: DeployedCloud, alice: ApiCaller) -> None:
    calls = [
        ["GET", "/api/v1/mesh"],
        ["GET", "/api/v1/mesh/some-id"],
        ["POST", "/api/v1/mesh?actor=echo"],
        ["POST", "/tools/call"],
        ["DELETE", "/api/v1/mesh/some-id"],
        ["POST", "/api/v1/mesh/events"],
    ]
    task_id = start(alice, "probe", {"calls": calls})
    statuses = [status for _, _, status in wait_for_end(alice, task_id)["result"]["results"]]
    assert statuses == [403, 403, 403, 403, 403, 200]


def test_a_forged_callback_gets_no_request_and_no_credential(gateway: DeployedCloud, operator: ApiCaller) -> None:
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(str(self.headers))
            self.send_error(500)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Writes no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        forged = f"http://127.0.0.1:{server.server_port}"
        for url in (
            forged,
            f"{forged}/",
            f"http://user@127.0.0.1:{server.server_port}",
            "https://example.com@" + forged[7:],
        ):
            task_id = str(uuid4())
            route = {"prev": [], "curr": "echo", "next": []}
            headers = {"x-asya-gateway-url": url}
            gateway.send_raw("echo", json.dumps({"id": task_id, "route": route, "headers": headers, "payload": 1}))
            task = until(
                lambda task_id=task_id: (
                    content  # type: ignore[misc]
                    if (content := operator.call("GET", f"/api/v1/mesh/{task_id}")[1]).get("status") in TERMINAL
                    else None
                ),
                "the task to end at its own gateway",
            )
            assert task["status"] == "succeeded"
    finally:
        server.shutdown()
        server.server_close()
    assert requests == []


# --- OpenAPI

STREAM_SUFFIXES = ("/events", "/stream")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.mark.rule("13.openapi")
def test_every_call_answers_as_documented(gateway: DeployedCloud, operator: ApiCaller) -> None:
    """Makes valid and invalid calls of every operation with schemathesis."""
    status, document = operator.call("GET", "/openapi.json")
    assert status == 200
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=operator.url)
    running, canceled = create_record(gateway), create_record(gateway)
    assert operator.call("DELETE", f"/api/v1/mesh/{canceled}")[0] == 204
    count = 0
    for result in schema.get_all_operations():
        operation = result.ok()  # type: ignore[union-attr]

        @settings(
            max_examples=4,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def make_calls(case: Any) -> None:
            nonlocal count
            count += 1
            if case.path_parameters and count % 2:
                # The stream of a running task stays open, so streams get the canceled one.
                case.path_parameters["id"] = canceled if case.path.endswith(STREAM_SUFFIXES) else running
            case.call_and_validate(auth=RequestSigner(operator), checks=CHECKS, timeout=60)

        given(case=schema[operation.path][operation.method.upper()].as_strategy())(make_calls)()
    assert count > 80


class RequestSigner:
    """Signs a request before it is sent."""

    def __init__(self, caller: ApiCaller) -> None:
        self._caller = caller

    def __call__(self, request: Any) -> Any:
        body = request.body or b""
        data = body if isinstance(body, bytes) else body.encode()
        request.headers.update(self._caller.signed(request.method, request.url, data))
        return request
