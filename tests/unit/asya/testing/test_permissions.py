"""A function makes only the calls that its manifest declares, in the kit and in simulations as on AWS."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya import registry
from asya.needs import Need
from asya.protocol.mesh_table import Actor, MeshTable, SparkJob
from asya.protocol.pause import Pause
from asya.protocol.table_keys import TOKENS_KEY
from asya.testing import permissions
from asya.testing.permissions import (
    Guarded,
    Permissions,
    of_events,
    of_items,
    of_job_runs,
    of_metrics,
    of_objects,
    of_queues,
)
from asya.testing.services.job_service import APPLICATION

ACTORS = {
    "bill": Actor(kind="handler", can_send_to=("ship",)),
    "ship": Actor(kind="handler"),
    "audit": Actor(kind="handler"),
    "ask": Actor(kind="pause", pause=Pause(callback=True)),
    "sign": Actor(kind="pause", pause=Pause()),
    "train": Actor(kind="spark", spark=SparkJob(job="train")),
}
ROLES = "arn:aws:iam::123456789012:role/"
TABLE = MeshTable(namespace="shop", actors=ACTORS)
QUEUES = "https://sqs.eu-west-1.amazonaws.com/123456789012/asya-shop-"
TASK = {"pk": {"S": "t"}, "sk": {"S": "record"}}


class Service:
    """Takes every call."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: "done"


def client(kind: Any, function: str = "bill") -> Guarded:
    return Guarded(Service(), function, Permissions(TABLE), kind)


def test_an_actor_sends_to_its_targets_only() -> None:
    sqs = client(of_queues)
    assert sqs.send_message_batch(QueueUrl=f"{QUEUES}ship", Entries=[]) == "done"
    for queue in ("audit", "x-ends", "x-triggers", "ship-dlq"):
        with pytest.raises(ClientError, match=f"not authorized to perform sqs:SendMessage on .*{queue}"):
            sqs.send_message(QueueUrl=f"{QUEUES}{queue}", MessageBody="{}")
    with pytest.raises(ClientError, match="AccessDenied"):
        sqs.delete_message_batch(QueueUrl=f"{QUEUES}ship", Entries=[])


def test_an_actor_reads_and_lists_its_own_objects_only() -> None:
    s3 = client(of_objects)
    assert s3.get_object(Bucket="b", Key="payloads/bill/ab/c.json") == "done"
    assert s3.put_object(Bucket="b", Key="payloads/ship/ab/c.json", Body=b"") == "done"
    for call, key in (
        ("get_object", "payloads/ship/ab/c.json"),
        ("head_object", "results/x"),
        ("put_object", "hops/x"),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            getattr(s3, call)(Bucket="b", Key=key)
    with pytest.raises(ClientError, match="s3:ListBucket"):
        list(s3.get_paginator("list_objects_v2").paginate(Bucket="b", Prefix="payloads/ship/"))


def test_an_actor_reads_the_states_of_tasks_only() -> None:
    dynamodb = client(of_items)
    keys = {"Keys": [TASK], "ProjectionExpression": "pk, #s", "ExpressionAttributeNames": {"#s": "status"}}
    assert dynamodb.batch_get_item(RequestItems={"asya-shop-tasks": keys}) == "done"
    with pytest.raises(ClientError, match="AccessDenied"):
        dynamodb.batch_get_item(RequestItems={"asya-shop-tasks": {"Keys": [TASK]}})
    with pytest.raises(ClientError, match="AccessDenied"):
        dynamodb.get_item(TableName="asya-shop-tasks", Key=TASK)


def test_keys_of_the_table_of_claims_are_checked() -> None:
    dynamodb = client(of_items)
    own, other = ({"pk": {"S": f"START#{actor}#1"}, "sk": {"S": "starts"}} for actor in ("bill", "ship"))
    assert dynamodb.update_item(TableName="asya-shop-sink", Key=own) == "done"
    for call in ({"Key": other}, {"Key": {"pk": {"S": "env-1"}, "sk": {"S": "claim"}}}):
        with pytest.raises(ClientError, match="AccessDenied"):
            dynamodb.update_item(TableName="asya-shop-sink", **call)


def test_each_item_of_a_transaction_counts() -> None:
    update = {"Update": {"TableName": "asya-shop-tasks", "Key": TASK}}
    assert client(of_items, "x-gateway-api").transact_write_items(TransactItems=[update]) == "done"
    with pytest.raises(ClientError, match="dynamodb:UpdateItem"):
        client(of_items).transact_write_items(TransactItems=[update])


def test_an_index_is_not_its_table() -> None:
    query = {"TableName": "asya-shop-fan-in", "IndexName": "open"}
    assert client(of_items, "x-fan-in-sweep").query(**query) == "done"
    with pytest.raises(ClientError, match="AccessDenied"):
        client(of_items, "x-fan-in-sweep").query(TableName="asya-shop-fan-in")


def test_only_who_makes_links_and_tokens_reads_their_secret() -> None:
    read = {"TableName": "asya-shop-sink", "Key": {"pk": {"S": TOKENS_KEY}, "sk": {"S": "secret"}}}
    for function in ("ask", "x-gateway-api", "x-gateway-stream"):
        assert client(of_items, function).get_item(**read) == "done"
    functions = {"bill", "sign", *(each.name for each in registry.functions_of(TABLE))}
    for function in sorted(functions - {"x-gateway-api", "x-gateway-stream"}):
        with pytest.raises(ClientError, match=f"{function} is not authorized to perform dynamodb:GetItem"):
            client(of_items, function).get_item(**read)


def test_events_are_those_of_the_mesh() -> None:
    own, other = ({"Source": f"asya.{namespace}", "DetailType": "", "Detail": "{}"} for namespace in ("shop", "bank"))
    assert client(of_events, "ask").put_events(Entries=[own]) == "done"
    for function, entries in (("bill", [own]), ("ask", [other]), ("ask", [own, other])):
        with pytest.raises(ClientError, match="AccessDenied"):
            client(of_events, function).put_events(Entries=entries)


def test_only_the_dispatcher_starts_job_runs() -> None:
    start = {"applicationId": APPLICATION, "tags": {"a": "b"}}
    own, other = (f"{ROLES}asya-shop-{role}-eu-west-1" for role in ("x-job-train", "x-job-other"))
    assert client(of_job_runs, "x-dispatch").start_job_run(executionRoleArn=own, **start) == "done"
    with pytest.raises(ClientError, match="iam:PassRole"):
        client(of_job_runs, "x-dispatch").start_job_run(executionRoleArn=other, **start)
    for function in ("bill", "train", "x-completion", "x-reconcile"):
        with pytest.raises(ClientError, match="emr-serverless:StartJobRun"):
            client(of_job_runs, function).start_job_run(executionRoleArn=own, **start)


def test_only_the_completion_cancels_job_runs() -> None:
    run = {"applicationId": APPLICATION, "jobRunId": "00b"}
    for function in ("x-dispatch", "x-completion", "x-reconcile"):
        assert client(of_job_runs, function).get_job_run(**run) == "done"
    assert client(of_job_runs, "x-completion").cancel_job_run(**run) == "done"
    for function in ("x-dispatch", "x-reconcile"):
        with pytest.raises(ClientError, match="emr-serverless:CancelJobRun"):
            client(of_job_runs, function).cancel_job_run(**run)
    with pytest.raises(ClientError, match="emr-serverless:ListJobRuns"):
        list(client(of_job_runs, "x-reconcile").get_paginator("list_job_runs").paginate(applicationId=APPLICATION))


def test_only_operators_see_metrics() -> None:
    with pytest.raises(ClientError, match="cloudwatch:GetMetricData"):
        list(client(of_metrics, "x-gateway-api").get_paginator("get_metric_data").paginate(MetricDataQueries=[]))


def test_who_is_no_function_has_no_role() -> None:
    assert client(of_queues, "client").send_message(QueueUrl=f"{QUEUES}x-ends", MessageBody="{}") == "done"


def test_a_call_without_its_need_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each need of a function counts: without it the function has the other calls alone."""
    sweep = registry.PRODUCT.steps["x-fan-in-sweep"]
    left: tuple[Need, ...] = sweep.needs[:1]
    monkeypatch.setitem(registry.PRODUCT.steps, "x-fan-in-sweep", replace(sweep, needs=left))
    permissions = Permissions(TABLE)
    with pytest.raises(ClientError, match="its manifest declares no such need"):
        Guarded(Service(), "x-fan-in-sweep", permissions, of_items).query(
            TableName="asya-shop-fan-in", IndexName="open"
        )
    assert permissions.refused == [
        "x-fan-in-sweep dynamodb:Query arn:aws:dynamodb:eu-west-1:123456789012:table/asya-shop-fan-in/index/open"
    ]


def test_an_observer_hears_of_equal_calls_once_and_a_refusal_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, str]] = []
    monkeypatch.setattr(
        permissions, "OBSERVERS", [lambda _, function, request: heard.append((function, request.resource))]
    )
    sqs = client(of_queues)
    for _ in range(2):
        sqs.send_message(QueueUrl=f"{QUEUES}ship", MessageBody="{}")
        with pytest.raises(ClientError, match="AccessDenied"):
            sqs.send_message(QueueUrl=f"{QUEUES}audit", MessageBody="{}")
    assert [(function, resource.rpartition(":")[2]) for function, resource in heard] == [("bill", "asya-shop-ship")]
    assert len(sqs.permissions.refused) == 2
