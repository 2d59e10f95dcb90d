"""A slot that a backfill starts again is named in the record of its first task (`protocol §13.resolution.slot`)."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from asya.capabilities.triggers.lambdas.starts import OccurrenceStarts
from asya.capabilities.triggers.occurrences import Occurrence
from asya.protocol.ids import occurrence_id
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.task import StartedBy, TaskRecord
from asya.protocol.triggers import Trigger
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.task_starter import TaskStarter
from asya.tasks.starts.idempotency import IdempotencyKey, KeyClaim
from tests.doubles.task_store import MemoryTaskStore
from tests.doubles.tasks import at

SLOT = "2026-11-20T01:00:00.000000Z"
FIRST = occurrence_id("nightly", f"slot {SLOT}")
NIGHTLY = Trigger(route=("greet",), cron="0 1 * * *")
MESH = MeshTable(namespace="shop", actors={"greet": Actor(kind="handler")}, triggers={"nightly": NIGHTLY})


class Keys:
    """Keys that nobody has used."""

    def claim(self, _key: IdempotencyKey, task_id: str, now: datetime) -> KeyClaim:
        return KeyClaim(task_id, now)

    def mark_sent(self, *_: object) -> None:
        """Note nothing."""


@pytest.mark.rule("13.resolution.slot")
@pytest.mark.parametrize("again", [True, False])
def test_a_slot_that_starts_again_is_named_in_its_first_record(again: bool) -> None:
    store: Any = MemoryTaskStore(1e6)
    sent = list[str]()
    store.put_record(TaskRecord(id=FIRST, status="failed", created_at=SLOT, updated_at=SLOT), None, at(0))
    log = SimpleNamespace(info=lambda *_, **__: None)
    telemetry = SimpleNamespace(log=log, count=lambda *_: None)
    settings = SimpleNamespace(table=MESH, gateway_url=None)
    services: Any = SimpleNamespace(settings=settings, telemetry=telemetry, now=lambda: at(0))
    sender: Any = SimpleNamespace(send=lambda delivery: sent.append(delivery.actor))
    keys: Any = Keys()
    starts = OccurrenceStarts(
        services, TaskStarter(Tasks(store, print), keys, sender, print), lambda: "00f067aa0ba902b7"
    )
    key = f"slot {SLOT} b-1" if again else f"slot {SLOT}"
    occurrence = Occurrence("nightly", key, Raw(b"{}"), StartedBy(kind="backfill", name="b-1", slot=SLOT))
    starts.start(occurrence)
    record = store.records([FIRST], at(0))[FIRST].record
    assert record.overtaken == ((occurrence.task_id,) if again else ())
