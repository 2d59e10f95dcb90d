"""protocol §9.set-size: a stored set that is larger than any fan-out fails, and needs no more memory than the largest set."""

import json
from datetime import timedelta

import pytest

from asya.capabilities.fan_in.aws import sets
from asya.capabilities.fan_in.sets import Decision
from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Value
from asya.protocol.mesh_table import FanIn
from asya.protocol.times import format_time
from tests.doubles.envelopes import message, status
from tests.doubles.fan_in_sets import PARTIAL, Start
from tests.doubles.fan_mesh import FanMesh
from tests.doubles.large_payloads import peak_of

COUNT = 1_000_000
MIB = 1024 * 1024
CHECK = '{"type":"set-due","set_id":"s","until":0}'
OUTER = {
    "actor": "gather", "set_id": "o", "origin_id": "top", "slice_index": 0, "slice_count": 2, "aggregation_key": "/r",
}  # fmt: skip


def store_set(mesh: FanMesh, count: int = COUNT, *, left: timedelta, decision: Decision | None = None) -> None:
    """Store a set with its slice 0, as a version without the limit did."""
    header = {"actor": "x-fan-in", "set_id": "s", "origin_id": "env-1", "slice_index": 0, "slice_count": count,
              "aggregation_key": "/r", "outer": OUTER}  # fmt: skip
    route = {"prev": ["split"], "curr": "x-fan-in", "next": ["post"]}
    body = message(route=route, headers={"x-asya-fan-in": header}, status=status(phase="processing", actor="x-fan-in"))
    known: dict[str, Value] = {
        "slice_count": count,
        "arrived": {0},
        "actor": "x-fan-in",
        "due_at": format_time(mesh.clock.moment + left),
        "open_in": sets.shard_of("s"),
    }
    if decision is not None:
        known |= {"decision": sets.json_text(decision), "lease_until": 0}
    for change in (put(sets.set_key("s"), known), put(sets.slice_key("s", 0, count), {"body": body})):
        Table(mesh.dynamodb, "asya-shop-fan-in").write(change)


@pytest.mark.rule("9.set-size")
@pytest.mark.parametrize("rule", [FanIn(), PARTIAL], ids=["fail", "partial"])
@pytest.mark.parametrize("left", [timedelta(minutes=5), timedelta(minutes=-5)], ids=["open", "overdue"])
def test_a_stored_set_that_is_too_large_fails_at_its_next_check(start: Start, rule: FanIn, left: timedelta) -> None:
    mesh = start(rule)
    mesh.process("x-fan-in", CHECK)  # imports
    store_set(mesh, left=left)
    kept: list[list[str]] = []
    assert peak_of(lambda: kept.append(mesh.process("x-fan-in", CHECK))) < 4 * MIB
    assert kept == [[]]
    (failed,) = mesh.world.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert (failed.status.phase, failed.status.reason) == ("failed", "SliceFailed")
    assert failed.status.error.message == "slice_count is over 5001, the slices of the largest fan-out"
    assert json.loads(bytes(failed.headers["x-asya-fan-in"])) == OUTER
    assert mesh.open_sets() == 0


@pytest.mark.rule("9.set-size")
def test_a_merge_of_a_set_that_is_too_large_fails(start: Start) -> None:
    mesh = start(PARTIAL)
    merged = Decision(how="merged", at=format_time(mesh.clock.moment), missing=tuple(range(1, 6000)))
    store_set(mesh, 6000, left=timedelta(minutes=-5), decision=merged)
    assert mesh.process("x-fan-in", CHECK) == []
    (failed,) = mesh.world.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert (failed.status.phase, failed.status.reason) == ("failed", "RuntimeError")
    assert "headers.x-asya-fan-in: slice_count is over 5001" in failed.status.error.message
    assert mesh.open_sets() == 0
