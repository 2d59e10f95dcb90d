"""The mesh in numbers, for operators (`protocol §13`, operations)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.function.aws import clients
from asya.gateway.operations.wiring import build_operations
from asya.protocol import names
from asya.protocol.envelope import Route
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import EventData, TaskEvent
from asya.protocol.mesh_table import Access, CircuitBreaker, Policy, Resiliency, Tool
from asya.protocol.times import format_time
from tests.doubles.dispatching import enqueue_ids, start_run
from tests.doubles.dynamo import create_tasks_table
from tests.doubles.heavy import TABLE
from tests.doubles.operators import ALICE, NOW, OperatorCalls, operator_calls

BREAKER = CircuitBreaker(failures=3, window=60.0, open_for=30.0)
PUBLISH = replace(
    TABLE.actors["publish"],
    resiliency=Resiliency(policies={"default": Policy(max_attempts=3)}, circuit_breaker=BREAKER),
    secrets={"KEY": "arn:aws:secretsmanager:…"},
    access=(Access(kind="bucket", name="data", read=("prices/*",)),),
)
MESH = replace(
    TABLE,
    actors=TABLE.actors | {"publish": PUBLISH},
    tools={"analyse": Tool(description="", route=("clean", "publish"))},
)
MESH_PATH = "/api/v1/operations/mesh"
ACTOR_PATH = "/api/v1/operations/actors/publish"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[OperatorCalls]:
    with operator_calls(monkeypatch, build_operations, names.OPERATIONS, MESH) as made:
        create_tasks_table(clients.dynamodb(), "asya-flights-breaker")
        for actor in MESH.actors:
            clients.sqs().create_queue(QueueName=names.dlq_name("flights", actor))
        yield made


def actors(calls: OperatorCalls) -> dict[str, dict[str, Any]]:
    code, body = calls.get(MESH_PATH)
    assert code == 200, body
    assert body["namespace"] == "flights"
    return {actor["name"]: actor for actor in body["actors"]}


@pytest.mark.rule("13.operations.mesh")
@pytest.mark.slow
def test_the_mesh_has_its_queues_runs_circuits_and_edges(calls: OperatorCalls) -> None:
    calls.world.put("publish", "{}")
    clients.sqs().send_message(
        QueueUrl=clients.sqs().get_queue_url(QueueName="asya-flights-publish-dlq")["QueueUrl"], MessageBody="{}"
    )
    start_run(calls.world, "a")
    enqueue_ids(calls.world, "b", "c")
    clients.dynamodb().put_item(
        TableName="asya-flights-breaker",
        Item={
            "pk": {"S": "publish"}, "sk": {"S": "circuit"}, "revision": {"N": "1"}, "era": {"N": "1"},
            "failures": {"L": []}, "open_until": {"N": str(NOW.timestamp() + 20)},
        },
    )  # fmt: skip
    found = actors(calls)
    assert set(found) == set(MESH.actors)
    publish, clean = found["publish"], found["clean"]
    assert (publish["waiting"], publish["in_flight"], publish["dead_letters"], publish["circuit"]) == (1, 0, 1, "open")
    assert clean["runs"] == {"pending": 2, "running": 1, "lingering": 0, "is_drained": False}
    assert (publish["runs"], clean["circuit"], publish["per_minute"]) == (None, None, None)
    body = calls.get(MESH_PATH)[1]
    assert {"from": "clean", "to": "publish", "tool": "analyse"} in body["edges"]
    assert body["tools"] == [{"name": "analyse", "route": ["clean", "publish"]}]


@pytest.mark.rule("13.operations.mesh.circuit")
def test_an_open_circuit_says_since_when_and_after_which_error(calls: OperatorCalls) -> None:
    clients.dynamodb().put_item(
        TableName="asya-flights-breaker",
        Item={
            "pk": {"S": "publish"}, "sk": {"S": "circuit"}, "revision": {"N": "1"}, "era": {"N": "1"}, "failures": {"L": []},
            "open_until": {"N": str(NOW.timestamp() + 20)}, "opened_at": {"N": str(NOW.timestamp() - 10)},
            "error": {"S": "ConnectionError: no answer"},
        },
    )  # fmt: skip
    found = actors(calls)
    assert found["publish"]["open_circuit"] == {
        "since": format_time(NOW - timedelta(seconds=10)),
        "next_call_at": format_time(NOW + timedelta(seconds=20)),
        "error": "ConnectionError: no answer",
        "failures": 3,
        "window": 60.0,
    }
    assert found["clean"]["open_circuit"] is None


@pytest.mark.rule("13.operations.mesh.not-read")
def test_a_queue_whose_mapping_is_missing_is_not_read_and_the_call_takes_actors(calls: OperatorCalls) -> None:
    code, body = calls.get(f"{MESH_PATH}?actor=publish,nobody")
    assert (code, [actor["name"] for actor in body["actors"]]) == (200, ["publish"])
    assert body["actors"][0]["not_read"]["reason"] == "event source mapping missing"


def test_without_access_to_lambda_it_is_unknown(calls: OperatorCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> Any:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "x"}}, "ListEventSourceMappings")

    monkeypatch.setattr(clients.functions(), "get_paginator", refuse)
    assert {actor["not_read"] for actor in actors(calls).values()} == {None}


def measure(metric: str, values: list[float], seconds: float, **dimensions: str) -> None:
    named = [{"Name": name, "Value": value} for name, value in {"namespace": "flights", **dimensions}.items()]
    at = NOW.replace(second=0, microsecond=0) - timedelta(seconds=seconds)
    clients.cloudwatch().put_metric_data(
        Namespace="Asya",
        MetricData=[{"MetricName": metric, "Dimensions": named, "Timestamp": at, "Value": value} for value in values],
    )


def test_rates_are_those_of_the_last_five_minutes(calls: OperatorCalls) -> None:
    measure("Received", [10.0, 5.0], 60, actor="publish")
    measure("Received", [100.0], 900, actor="publish")
    measure("Processed", [5.0], 120, actor="publish", outcome="failed")
    publish = actors(calls)["publish"]
    assert (publish["per_minute"], publish["failing_per_minute"], publish["oldest_seconds"]) == (3.0, 1.0, None)


@pytest.mark.rule("13.operations.actor")
def test_an_actor_has_its_settings_and_its_recent_errors_and_no_secret(calls: OperatorCalls) -> None:
    error = ErrorInfo(type="KeyError", message="'price'")
    at = format_time(NOW - timedelta(seconds=5))
    for name, actor in (("order-7", "publish"), ("order-8", "clean")):
        data = EventData(actor=actor, route=Route((), actor, ()), reason="KeyError", error=error)
        calls.report([TaskEvent(id=name, status="failed", at=at, position=0, data=data)])
    code, body = calls.get(ACTOR_PATH)
    assert (code, body["numbers"]["name"], body["secrets"]) == (200, "publish", ["KEY"])
    assert (body["policies"]["default"]["max_attempts"], body["circuit_breaker"]["failures"]) == (3, 3)
    (access,) = body["access"]
    assert (access["kind"], access["name"], access["read"], access["write"]) == ("bucket", "data", ["prices/*"], [])
    assert (body["queue"]["visibility_timeout"], body["queue"]["max_receives"]) == (30, None)
    assert [(each["id"], each["type"]) for each in body["recent_errors"]] == [("order-7", "KeyError")]
    assert "secretsmanager" not in str(body)
    assert calls.get("/api/v1/operations/actors/nobody")[0] == 404


def test_without_metrics_the_other_numbers_are_shown(calls: OperatorCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "x"}}, "GetMetricData")

    monkeypatch.setattr(clients.cloudwatch(), "get_paginator", refuse)
    assert actors(calls)["publish"]["per_minute"] is None
    assert calls.get(ACTOR_PATH)[1]["durations"] == {"median": None, "p95": None}


@pytest.mark.rule("13.operations")
@pytest.mark.parametrize("path", [MESH_PATH, ACTOR_PATH])
def test_other_callers_are_refused(calls: OperatorCalls, path: str) -> None:
    assert calls.get(path, ALICE)[0] == 403
