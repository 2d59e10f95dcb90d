"""protocol §9: slices that arrive in one batch, and batches that race or die."""

import json
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.capabilities.fan_in.aws.slice_store import INLINE_BYTES
from asya.protocol.mesh_table import FanIn
from tests.doubles.fan_in_sets import PARTIAL, Start
from tests.doubles.fan_mesh import FanMesh, ProcessCrash
from tests.doubles.mesh_world import sqs_event


def slice_body(index: int, count: int, set_id: str = "s") -> str:
    """The message of a slice at x-fan-in."""
    header = {"actor": "x-fan-in", "set_id": set_id, "origin_id": f"{set_id}-0", "slice_index": index,
              "slice_count": count, "aggregation_key": "/r"}  # fmt: skip
    headers = {"x-asya-fan-in": header}
    route = {"prev": ["split"], "curr": "x-fan-in", "next": [] if index else ["post"]}
    return json.dumps({"id": f"{set_id}-{index}", "route": route, "headers": headers, "payload": {"n": index}})


def ended(index: int, count: int, set_id: str = "s", phase: str = "failed") -> str:
    """The message that a slice ended without a result."""
    content = {"type": "slice-ended", "set_id": set_id, "slice_index": index, "slice_count": count, "phase": phase}
    return json.dumps(content | {"reason": "RuntimeError", "error": {"type": "ValueError", "message": f"lost {index}"}})


def results(mesh: FanMesh) -> dict[str, Any]:
    """The merged results by origin, of the envelopes at post."""
    envelopes = [json.loads(message.body) for message in mesh.world.messages("post")]
    assert len(envelopes) == len({each["id"] for each in envelopes})
    return {each["id"]: [item and item["n"] for item in each["payload"]["r"]] for each in envelopes}


class Updates:
    """Watches the writes to the items of sets.

    Attributes:
        set_ids: the set of each write that counts slices.
    """

    def __init__(self, mesh: FanMesh, before: Any = None) -> None:
        self.set_ids: list[str] = []
        update = mesh.dynamodb.update_item

        def watched(**request: Any) -> Any:
            if " ADD " in request["UpdateExpression"] and "fan-in" in request["TableName"]:
                self.set_ids.append(request["Key"]["pk"]["S"])
                if before is not None:
                    before(request)
            return update(**request)

        mesh.world.monkeypatch.setattr(mesh.dynamodb, "update_item", watched)


@pytest.mark.rule("9.count")
def test_each_set_counts_the_slices_of_a_batch_once(start: Start) -> None:
    mesh = start(PARTIAL)
    updates = Updates(mesh)
    batch = [slice_body(index, 3, set_id) for index in range(3) for set_id in "st"]
    assert mesh.process("x-fan-in", *batch[:4], ended(2, 3, "s"), batch[5]) == []
    assert sorted(updates.set_ids) == ["s", "t"]
    assert results(mesh) == {"s-0": [1, None], "t-0": [1, 2]}
    assert "succeeded" in mesh.world.gateway.reported("s-1")


@pytest.mark.rule("9.count", "9.stored-once")
@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", range(1, 11))
def test_whenever_the_process_dies_over_a_batch_its_slices_count_once(start: Start, call: int, when: str) -> None:
    mesh = start()
    batch = [slice_body(index, 3) for index in range(3)]
    mesh.crashes.at = {call: when}
    with pytest.raises(ProcessCrash):
        mesh.process("x-fan-in", *batch)
    redelivered = mesh.function("x-fan-in")(sqs_event(*batch, receive_counts=dict.fromkeys(range(3), 2)))
    assert redelivered == {"batchItemFailures": []}
    mesh.run(until=timedelta(minutes=10))
    assert len(mesh.merged("s-0")) == 1
    envelope = json.loads(next(iter(mesh.merged("s-0"))))
    assert envelope["payload"]["r"] == [{"n": 1}, {"n": 2}]
    assert all("succeeded" in mesh.world.gateway.reported(f"s-{index}") for index in (1, 2))


@pytest.mark.rule("9.count", "9.merge.once")
def test_of_two_batches_that_race_one_merges_the_set(start: Start) -> None:
    mesh = start()
    others: list[Any] = []

    def race(_request: Any) -> None:
        if not others:
            others.append(None)
            others[0] = mesh.process("x-fan-in", slice_body(0, 5), slice_body(1, 5), slice_body(2, 5))

    Updates(mesh, race)
    assert mesh.process("x-fan-in", slice_body(2, 5), slice_body(3, 5), slice_body(4, 5)) == []
    assert others == [[]]
    assert results(mesh) == {"s-0": [1, 2, 3, 4]}


@pytest.mark.rule("9.stored-once")
def test_duplicates_alone_in_a_batch_still_complete_a_set_that_was_not_finished(start: Start) -> None:
    mesh = start()
    mesh.crashes.at = {7: "before"}  # the decision
    batch = [slice_body(0, 2), slice_body(1, 2)]
    with pytest.raises(ProcessCrash):
        mesh.process("x-fan-in", *batch)
    assert results(mesh) == {}
    mesh.crashes.at = {}
    assert mesh.process("x-fan-in", batch[1]) == []
    assert results(mesh) == {"s-0": [1]}


def test_a_slice_of_another_count_ends_alone(start: Start) -> None:
    mesh = start()
    assert mesh.process("x-fan-in", slice_body(0, 3), slice_body(1, 3)) == []
    assert mesh.process("x-fan-in", slice_body(2, 3), slice_body(4, 5)) == []
    (mismatched,) = mesh.world.sent("x-sump")
    assert mismatched.id == "s-4"
    assert mesh.world.gateway.reported("s-4") == ["registered"]  # x-sump reports its end
    assert results(mesh) == {"s-0": [1, 2]}


def test_a_set_that_cannot_be_counted_keeps_its_own_messages_only(start: Start) -> None:
    mesh = start()

    def refuse(request: Any) -> None:
        if request["Key"]["pk"]["S"] == "s":
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "UpdateItem")

    Updates(mesh, refuse)
    batch = [slice_body(0, 2, "s"), slice_body(0, 2, "t"), slice_body(1, 2, "s"), slice_body(1, 2, "t")]
    assert mesh.process("x-fan-in", *batch) == ["message-0", "message-2"]
    assert results(mesh) == {"t-0": [1]}
    assert mesh.world.gateway.reported("s-1") == ["registered"]


@pytest.mark.rule("9.count")
def test_a_slice_that_cannot_be_stored_counts_once_it_is(start: Start) -> None:
    mesh = start()
    large = json.loads(slice_body(1, 3))
    large["payload"]["text"] = "x" * INLINE_BYTES  # its content goes to S3
    mesh.world.s3.fails = lambda action, key: action == "put" and key.startswith("slices/")
    assert mesh.process("x-fan-in", slice_body(0, 3), json.dumps(large)) == ["message-1"]
    mesh.world.s3.fails = lambda action, key: False
    assert mesh.process("x-fan-in", slice_body(2, 3)) == []
    assert results(mesh) == {}
    assert mesh.process("x-fan-in", json.dumps(large)) == []
    assert results(mesh) == {"s-0": [1, 2]}


@pytest.mark.rule("9.set-size")
def test_made_up_slices_count_nowhere_and_harm_no_neighbor(start: Start) -> None:
    mesh = start()
    made_up = [slice_body(0, 10**9, "big"), ended(-5, 2), ended(0, 0), ended(10**44, 10**44 + 1)]
    assert mesh.process("x-fan-in", slice_body(0, 2), *made_up, slice_body(1, 2)) == []
    assert results(mesh) == {"s-0": [1]}
    reasons = [envelope.status and envelope.status.reason for envelope in mesh.world.sent("x-sump")]
    assert sorted(map(str, reasons)) == ["ParseError", "ParseError", "ParseError", "RouteMismatch"]
    assert mesh.open_sets() == 0


@pytest.mark.rule("9.timeout")
def test_slices_of_a_batch_count_before_a_check_after_them(start: Start) -> None:
    mesh = start(FanIn(timeout=60.0))
    assert mesh.process("x-fan-in", slice_body(0, 2)) == []
    mesh.clock.moment += timedelta(seconds=61)
    check = '{"type":"set-due","set_id":"s","until":0}'
    assert mesh.process("x-fan-in", slice_body(1, 2), check) == []
    assert results(mesh) == {"s-0": [1]}


def test_the_end_of_an_origin_closes_a_set_whose_slices_come_in_the_same_batch(start: Start) -> None:
    mesh = start()
    assert mesh.process("x-fan-in", slice_body(1, 3), ended(0, 3), slice_body(2, 3)) == []
    assert mesh.open_sets() == 0
    assert all("succeeded" in mesh.world.gateway.reported(f"s-{index}") for index in (1, 2))
