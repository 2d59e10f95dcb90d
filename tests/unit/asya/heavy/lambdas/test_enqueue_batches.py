"""The envelopes of a batch become pending in few calls (`protocol §10`)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.heavy.lambdas.enqueue import Enqueuer
from tests.doubles.dispatching import waiting_requests
from tests.doubles.heavy import HeavyWorld, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def test_a_batch_becomes_pending_despite_redeliveries_and_duplicates(world: HeavyWorld) -> None:
    world.send("a")
    first = world.enqueue()["Records"]
    for envelope_id in ("b", "c", "b"):
        world.send(envelope_id)
    more = world.receive("clean")["Records"]
    again = [{**record, "messageId": f"again-{record['messageId']}"} for record in first]

    answer = Enqueuer(world.services_of("clean")).process({"Records": [*again, *more]})

    assert answer == {"batchItemFailures": []}
    assert sorted(member.id for member in world.services.pending.members("clean")) == ["a", "b", "c"]


@pytest.mark.rule("10.admit.batch")
def test_a_burst_costs_few_calls(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    write = world.dynamodb.transact_write_items

    def counted(**request: Any) -> Any:
        calls.append(len(request["TransactItems"]) // 2)  # each envelope has a claim and an item
        return write(**request)

    monkeypatch.setattr(world.dynamodb, "transact_write_items", counted)
    for number in range(10):
        world.send(f"e{number}")
    records = [record for _ in range(12) for record in world.receive("clean")["Records"]]
    copies = [_as(record, f"e{number}") for number, record in enumerate(records * 11)]

    assert Enqueuer(world.services_of("clean")).process({"Records": copies}) == {"batchItemFailures": []}

    assert calls == [50, 50, 10]
    assert len(world.items("PENDING#clean")) == 110


def _as(record: dict[str, Any], envelope_id: str) -> dict[str, Any]:
    body = json.loads(record["body"]) | {"id": envelope_id}
    return {**record, "messageId": envelope_id, "body": json.dumps(body)}


@pytest.mark.rule("10.admit.batch")
def test_only_messages_that_the_table_rejects_are_kept(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    write = world.dynamodb.transact_write_items

    def refuse_b(**request: Any) -> Any:
        if "CLAIM#b" in str(request):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "busy"}}, "TransactWriteItems")
        return write(**request)

    monkeypatch.setattr(world.dynamodb, "transact_write_items", refuse_b)
    for envelope_id in "abc":
        world.send(envelope_id)
    event = world.receive("clean")
    message_ids = {json.loads(record["body"])["id"]: record["messageId"] for record in event["Records"]}

    answer = Enqueuer(world.services_of("clean")).process(event)

    assert answer == {"batchItemFailures": [{"itemIdentifier": message_ids["b"]}]}
    assert sorted(member.id for member in world.services.pending.members("clean")) == ["a", "c"]
    assert waiting_requests(world)["due"] == "1"
