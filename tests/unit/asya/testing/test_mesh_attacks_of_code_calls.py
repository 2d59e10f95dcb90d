"""The role of one light actor opens no item, object or queue of others (`docs/security.md`, actor.reads, actor.items)."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.protocol.names import dlq_name, queue_name, table_name
from asya.protocol.table_keys import TOKENS_KEY
from asya.testing import Mesh
from asya.testing.permissions import of_items, of_objects, of_queues
from tests.doubles.attacked_by_code import CLAIMS, Body, addresses, new_bank


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return new_bank(tmp_path_factory.mktemp("bank"))


def item(pk: str, table: str = "sink", **more: Any) -> Body:
    return {"TableName": table_name("bank", table), "Key": {"pk": {"S": pk}, "sk": {"S": "x"}}} | more


def states(**more: Any) -> Body:
    return {"RequestItems": {table_name("bank", "tasks"): {"Keys": [{"pk": {"S": "t"}, "sk": {"S": "record"}}]} | more}}


def query(table: str) -> Body:
    return {"TableName": table_name("bank", table), "KeyConditionExpression": "pk = :id"} | {
        "ExpressionAttributeValues": {":id": {"S": "t"}}
    }


OBJECTS = (
    *("paused/t/0/1.json", "waiting/t/0/1-1.json", "slices/s/000001-a.json", "runs/crunch/0000000001/manifest.json"),
    *("pending/crunch/a.json", "dlq/t/0/1.json", "hops/t/0/1.work.json", "buffered/work/t/0/1-a.json", "mesh/code.zip"),
    *("reports/refused/m.json", "results/succeeded/t.json", "results/checkpoint/t/1.json", "results/index/recent/a"),
)


ITEMS: list[tuple[str, Body]] = [
    *(("get_item", item(pk)) for pk in (TOKENS_KEY, "KEY#", "KEY#work", "OWNER#t", "START#eve#m", "DLQ#m", "t")),
    *(
        ("update_item", item(pk))
        for pk in ("ROLE#r", "KEY#eve", "LETTER#work#a", "LETTER#a", "START#work#m", "DLQ#m", "t")
    ),
    *(("put_item", item(pk)) for pk in ("ROLE#r", "LETTER#work#a", "LETTER#a", "OWNER#t", "OUTAGE", "t")),
    *(("delete_item", item(pk)) for pk in ("OWNER#t", "OUTAGE", "t")),
    *((call, item("eve#t", "hops")) for call in ("get_item", "put_item")),
    *((call, item("eve", "breaker")) for call in ("get_item", "put_item", "update_item")),
    *((call, item("t", table)) for call in ("get_item", "update_item") for table in ("tasks", "pending", "fan-in")),
    *(("query", query(table)) for table in ("tasks", "pending", "fan-in", "sink", "hops", "breaker")),
    *(("batch_get_item", states(**more)) for more in ({}, {"ProjectionExpression": "pk, payload"})),
    ("transact_write_items", {"TransactItems": [{"Update": item("OWNER#t")}, {"Put": item("t")}]}),
    ("batch_write_item", {"RequestItems": {CLAIMS: [{"PutRequest": {"Item": item("OWNER#t")["Key"]}}]}}),
]


QUEUES = (
    "work",
    "approve",
    "crunch",
    "gather",
    "x-ends",
    "x-dispatch",
    "x-completion",
    "x-triggers",
    "x-push",
    "work-dlq",
)


@pytest.mark.rule("4.keys.secret", "4.claim-check.readers", "5.ends-of-the-crew", "13.states")
@pytest.mark.parametrize(("call", "arguments"), ITEMS, ids=lambda value: value if isinstance(value, str) else "")
def test_an_item_of_others_is_closed(bank: Mesh, call: str, arguments: Body) -> None:
    requests = list(of_items(call, arguments, addresses(bank)))
    with pytest.raises(ClientError, match="not authorized"):
        bank.cloud.permissions.check("eve", requests)


@pytest.mark.rule("4.claim-check.readers")
@pytest.mark.parametrize("key", [*OBJECTS, "payloads/work/a", "inbox/work/a"])
def test_an_object_of_others_is_closed(bank: Mesh, key: str) -> None:
    folder = key.rpartition("/")[0] + "/"
    calls = [("get_object", {"Key": key}), ("delete_object", {"Key": key}), ("list_objects_v2", {"Prefix": folder})]
    calls += [("put_object", {"Key": key})]
    for call, arguments in calls:
        with pytest.raises(ClientError, match="not authorized"):
            bank.cloud.permissions.check("eve", of_objects(call, arguments, addresses(bank)))


@pytest.mark.rule("1.who-may-be-sent-to", "5.ends-of-the-crew")
def test_a_queue_of_others_is_closed(bank: Mesh) -> None:
    def refused(call: str, queue: str) -> None:
        requests = list(of_queues(call, {"QueueUrl": f"https://sqs/{queue}"}, addresses(bank)))
        with pytest.raises(ClientError, match="not authorized"):
            bank.cloud.permissions.check("eve", requests)

    for name in QUEUES:
        queue = dlq_name("bank", "work") if name == "work-dlq" else queue_name("bank", name)
        for call in ("send_message", "send_message_batch", "receive_message", "delete_message"):
            refused(call, queue)
    refused("receive_message", dlq_name("bank", "eve"))
