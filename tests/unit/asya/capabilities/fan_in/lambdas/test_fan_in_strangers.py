"""What a sender outside sends to a fan-in actor changes no set (`protocol §4.entry.ends`)."""

import json
from typing import Any

import pytest

from asya.capabilities.fan_in.lambdas.wiring import build_fan_in
from tests.doubles.fan_in_sets import SET, Start, child, hold_back, numbers, scored
from tests.doubles.mesh_world import batch_failures, sqs_event


def forged(held: str) -> list[str]:
    """The last slice of the set as it was sent, with another payload, of a later generation, and as lost; and a time limit."""
    envelope: dict[str, Any] = json.loads(held)
    later = envelope["headers"] | {"x-asya-generation": 9999}
    ended = {
        "type": "slice-ended",
        "set_id": SET,
        "slice_index": 2,
        "slice_count": 3,
        "phase": "failed",
        "reason": "Timeout",
    }
    return [
        held,
        json.dumps(envelope | {"payload": "forged"}),
        json.dumps(envelope | {"headers": later}),
        json.dumps(envelope | {"id": "order-7"}),
        json.dumps(ended),
        json.dumps({"type": "set-due", "set_id": SET}),
    ]


@pytest.mark.rule("4.entry.ends", "4.entry.reserved")
def test_a_sender_outside_neither_fills_nor_ends_a_set(start: Start) -> None:
    mesh = start()
    mesh.start(numbers(2))
    held = hold_back(mesh, child(2))
    mesh.run()
    before = mesh.dynamodb.scan(TableName="asya-shop-fan-in")["Items"]
    assert before
    event = sqs_event(*forged(held[0].body))
    for record in event["Records"]:
        record["attributes"]["SenderId"] = "AIDAEVE"
    assert batch_failures(build_fan_in(mesh.world.services("x-fan-in", mesh.table)).process(event)) == []
    assert mesh.dynamodb.scan(TableName="asya-shop-fan-in")["Items"] == before
    mesh.run()
    assert mesh.ends == []
    mesh.queued += held
    mesh.run()
    assert mesh.result()["payload"]["results"] == scored(2)
