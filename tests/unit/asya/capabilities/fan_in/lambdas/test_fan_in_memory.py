"""protocol §5: a batch of slices behind claim checks needs the memory of one of them."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.doubles.fan_in_sets import Start
from tests.doubles.large_payloads import LargePayloads, peak_of
from tests.doubles.mesh_world import MeshWorld, sqs_event

MIB = 1024 * 1024


def slices(payloads: LargePayloads, first: int, count: int, slice_count: int) -> list[bytes]:
    """Messages of the slices with these indices, each behind a claim check."""
    known = {"actor": "x-fan-in", "set_id": "s", "origin_id": "env-0", "slice_count": slice_count}
    route = {"prev": ["split"], "curr": "x-fan-in", "next": []}
    return [
        body
        for index in range(first, first + count)
        for body in payloads.messages(
            1,
            first=index,
            route=route,
            headers={"x-asya-fan-in": known | {"slice_index": index, "aggregation_key": "/r"}},
        )
    ]


@pytest.mark.rule("5.payloads", "9.count")
@pytest.mark.parametrize("outcome", ["stored", "refused", "throttled"])
def test_5_a_batch_of_slices_needs_the_memory_of_one(start: Start, world: MeshWorld, outcome: str) -> None:
    payloads = world.s3 = LargePayloads(size=2 * MIB, actor="x-fan-in")
    mesh = start()
    function: Any = mesh.function("x-fan-in")
    warm_up = sqs_event(*slices(payloads, 1, 1, 40))
    slice_count = 41 if outcome == "refused" else 40
    one, ten = (sqs_event(*slices(payloads, first, count, slice_count)) for first, count in ((2, 1), (3, 10)))
    function(warm_up)
    alone = peak_of(lambda: function(one))
    if outcome == "throttled":

        def throttle(**_request: Any) -> Any:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "UpdateItem")

        world.monkeypatch.setattr(mesh.dynamodb, "update_item", throttle)
    answers: list[Any] = []
    together = peak_of(lambda: answers.append(function(ten)))
    kept = [f"message-{number}" for number in range(10)] if outcome == "throttled" else []
    assert [item["itemIdentifier"] for item in answers[0]["batchItemFailures"]] == kept
    assert len(world.sent("x-sump")) == (11 if outcome == "refused" else 0)
    assert alone > payloads.size
    assert together < alone + payloads.size
