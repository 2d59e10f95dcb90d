"""The writes and reads of large sets (protocol §9): write units of each slice, and of each partition key."""

import json
import os
from dataclasses import dataclass, replace
from typing import Any

import pytest

from asya.capabilities.fan_in.lambdas.wiring import build_fan_in
from asya.function.aws import clients
from asya.protocol.mesh_table import MeshTable
from asya.testing.dynamo.tables import Index, MemoryDynamo, Table
from tests.doubles.fan_mesh import Clock, fan_table
from tests.doubles.mesh_world import MeshWorld, sqs_event
from tests.doubles.write_units import WriteUnits

BATCH = 10
KIB = 1024
# What a partition of DynamoDB takes in a second.
UNITS_PER_SECOND = 1_000
# The four delays between the five receives of a message: 5, 10, 20 and 40 seconds (protocol §4).
SECONDS_OF_RECEIVES = 75
# The largest set takes a minute. The tables in memory need most of it.
ITEMS = 5_000 if os.environ.get("ASYA_FULL_SIZE") else 1_000


@dataclass
class CountedSet:
    """A set of slices that were received in full batches.

    Attributes:
        units: what its writes cost.
    """

    world: MeshWorld
    units: WriteUnits
    table: MeshTable

    def receive(self, count: int, size: int) -> None:
        """Receive a set of so many items, with so many bytes each."""
        services = self.world.services("x-fan-in", self.table, reporting=False)
        actor = build_fan_in(replace(services, environment=Clock()))
        bodies = [_slice(index, count + 1, size) for index in range(count, -1, -1)]
        for start in range(0, len(bodies), BATCH):
            assert actor.process(sqs_event(*bodies[start : start + BATCH])) == {"batchItemFailures": []}

    @property
    def of_set(self) -> dict[str, int]:
        """The write units of the table of sets by partition key, without those of the claims."""
        return {key: units for key, units in self.units.by_key.items() if not key.startswith("item-")}


def _slice(index: int, count: int, size: int) -> str:
    header = {"actor": "x-fan-in", "set_id": "0db8e893-7132-4994-9213-65ef2b9c17cc", "origin_id": "env-1",
              "slice_index": index, "slice_count": count, "aggregation_key": "/r"}  # fmt: skip
    envelope = {
        "id": f"item-{index}" if index else "env-1",
        "route": {"prev": ["split"], "curr": "x-fan-in", "next": [] if index else ["post"]},
        "headers": {"x-asya-fan-in": header},
        "status": {"phase": "pending"},
        "payload": {"n": index, "text": "x" * size} if index else {},
    }
    return json.dumps(envelope)


@pytest.fixture
def counted(world: MeshWorld) -> CountedSet:
    tables = MemoryDynamo(
        {
            "asya-shop-fan-in": Table({"open": Index("open_in", "due_at", ("actor",))}),
            "asya-shop-sink": Table(),
        }
    )
    units = WriteUnits(tables)
    world.monkeypatch.setattr(clients, "dynamodb", lambda: units)
    return CountedSet(world, units, fan_table())


def merged_payload(world: MeshWorld) -> Any:
    """The payload of the only envelope that left the set."""
    (message,) = world.messages("post")
    envelope = json.loads(message.body)
    reference = envelope.get("headers", {}).get("x-asya-payload-ref")
    if reference is None:
        return envelope["payload"]
    keys = world.s3.keys("payloads/")
    return json.loads(world.s3.content(keys[-1]))


@pytest.mark.rule("9.count", "9.size")
@pytest.mark.slow
def test_a_slice_of_50_kb_costs_two_write_units(counted: CountedSet) -> None:
    counted.receive(199, 50 * KIB)
    # The slice's item and a tenth of an update of the set's item.
    assert sum(counted.of_set.values()) / 200 <= 1.5
    assert counted.units.writes["slice"] == 200
    # An update for each batch; then the decision, the delivery and one timeout check.
    assert counted.units.writes["set"] <= 20 + 4


@pytest.mark.rule("9.size")
def test_a_slice_of_4_kb_is_inline(counted: CountedSet) -> None:
    counted.receive(49, 3 * KIB)
    assert sum(counted.of_set.values()) / 50 <= 5
    assert counted.world.s3.keys("slices/") == []


@pytest.mark.slow
@pytest.mark.rule("9.size", "9.merge")
@pytest.mark.parametrize(("size", "most"), [(50 * KIB, 2.2), (3 * KIB, 5.2)])
def test_no_partition_key_of_a_large_set_outlasts_the_receives_of_a_slice(
    counted: CountedSet, size: int, most: float
) -> None:
    counted.receive(ITEMS, size)
    assert sum(counted.of_set.values()) / (ITEMS + 1) <= most
    assert max(counted.of_set.values()) / UNITS_PER_SECOND < SECONDS_OF_RECEIVES / 5
    assert [item["n"] for item in merged_payload(counted.world)["r"]] == list(range(1, ITEMS + 1))
