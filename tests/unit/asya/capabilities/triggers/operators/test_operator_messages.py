"""The messages that operators cause, and which occurrences a pause stops."""

from datetime import UTC, datetime

import pytest
from msgspec import Raw

from asya.capabilities.triggers.messages import UnusableMessageError, slot_message
from asya.capabilities.triggers.occurrences import Occurrence, slot_key
from asya.capabilities.triggers.operators.operator_messages import (
    backfill_message,
    fire_message,
    heeds_pause,
    pause_problem,
    read_backfill,
    read_fire,
)
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.task import StartedBy
from asya.protocol.triggers import ObjectSource, Trigger

NOW = datetime(2026, 11, 25, 2, 5, 1, tzinfo=UTC)
MESH = MeshTable(
    namespace="shop",
    actors={"greet": Actor(kind="handler")},
    triggers={
        "nightly": Trigger(route=("greet",), cron="0 2 * * *", payload={"day": "{date} {time}"}),
        "landed": Trigger(route=("greet",), objects=ObjectSource(bucket="data")),
    },
)


@pytest.mark.rule("16.fire")
def test_16_a_task_for_now_has_the_values_of_now() -> None:
    """A repeated call has the same key."""
    first, second = (read_fire(fire_message("nightly", name, NOW), MESH) for name in ("call-1", "call-2"))
    assert first is not None
    assert second is not None
    assert bytes(first.payload) == b'{"day":"2026-11-25 02:05"}'
    assert first.started_by == StartedBy(kind="trigger", name="nightly")
    assert first.task_id != second.task_id
    assert first == read_fire(fire_message("nightly", "call-1", NOW), MESH)


@pytest.mark.rule("16.fire.refused")
def test_16_a_trigger_without_a_schedule_is_not_fired() -> None:
    """Nor is one that the mesh does not have."""
    for name in ("landed", "other"):
        with pytest.raises(UnusableMessageError):
            read_fire(fire_message(name, "call-1", NOW), MESH)


def test_16_messages_are_told_apart() -> None:
    """Each has a form of its own."""
    slot = slot_message("nightly", NOW)
    assert read_backfill(backfill_message("b1")) == "b1"
    for body in (slot, fire_message("nightly", "1", NOW), b"\xff", b"[" * 100_000, b'{"backfill": 1}'):
        assert read_backfill(body) is None
    for body in (slot, backfill_message("b1"), b"\xff", b'{"trigger": "nightly", "fired": "1", "at": "now"}'):
        assert read_fire(body, MESH) is None


@pytest.mark.rule("16.pause")
def test_16_a_pause_stops_all_but_slots_and_what_operators_start() -> None:
    """The sweep heeds the pause for slots."""
    origin = StartedBy(kind="trigger", name="landed")
    fired = read_fire(fire_message("nightly", "1", NOW), MESH)
    assert fired is not None
    assert not heeds_pause(fired)
    assert not heeds_pause(Occurrence("nightly", slot_key(NOW), Raw(b"{}"), origin))
    assert heeds_pause(Occurrence("landed", "object data/a.csv", Raw(b"{}"), origin))
    assert "`asya trigger resume landed` and a redrive of this letter" in pause_problem("landed")
