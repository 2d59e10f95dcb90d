"""A property: whatever a stranger sends to a queue, nothing of a task of another owner changes (`protocol §4.entry`).

The mesh is at rest, with tasks that ended, paused, wait for slices or lie in a dead-letter queue.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING

import pytest

from asya.testing.dynamo.tables import copied
from asya.testing.services.faults import FaultProfile
from asya.testing.services.queues import Message
from tests.simulation.cloud import Cloud, deploy
from tests.simulation.inputs.meshes import random_mesh
from tests.simulation.inputs.strangers import Stranger
from tests.simulation.inputs.workload import Workload
from tests.simulation.schedule import TICK

if TYPE_CHECKING:
    from tests.simulation.inputs.features import Features

SEEDS = 20
MESSAGES = 10_000 if os.environ.get("ASYA_FULL_SIZE") else 600
TASKS = 20
_OF_THE_MESH = ("SWEEP", "LISTED")
"""Items about the sweeps and the hours with tasks, which are of no task."""
FEATURES: Features = frozenset({"pauses", "ends", "overrides"})


class _Observer:
    """Notes the messages. The checks of the simulation know only senders that are roles of the mesh."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def accepted(self, message: Message, _: object) -> None:
        self.seen.append(message.body)

    def deleted(self, *_: object) -> None: ...
    def dead_lettered(self, *_: object) -> None: ...
    def given_up(self, *_: object) -> None: ...
    def moved(self, *_: object) -> None: ...
    def put(self, *_: object) -> None: ...
    def removed(self, *_: object) -> None: ...


def everything(cloud: Cloud) -> dict[str, object]:
    """All objects, and all items of tasks, by their keys."""
    items = {
        f"{name}:{key}": copied(item)
        for name, table in cloud.tables.tables.items()
        for key, item in table.items.items()
        if key[0] not in _OF_THE_MESH and not name.endswith("-breaker")
    }
    return items | cloud.bucket.objects


def settle(cloud: Cloud) -> None:
    """Run the mesh until nothing is under way."""
    for _ in range(3):
        cloud.simulation.scheduler.run()
        cloud.simulation.scheduler.after(TICK, cloud.system.wake_all)
    cloud.simulation.scheduler.run()


def known_ids(before: dict[str, object], workload: Workload) -> Iterator[str]:
    yield from workload.started
    for key in before:
        for part in key.replace("'", "/").split("/"):
            if part.startswith("raw-") or part.count("-") == 4:
                yield part.removesuffix(".json")


@pytest.mark.rule("4.entry", "4.entry.reserved", "4.entry.claim", "4.entry.ends", "5.reports-of-the-sender")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_stranger_changes_nothing_of_others(seed: int) -> None:
    random = Random(f"strangers {seed}")
    mesh = random_mesh(random, FaultProfile(), features=FEATURES)
    cloud = deploy(mesh, random, FaultProfile())
    workload = Workload(cloud, random, FEATURES, producer="AIDAPRODUCER:session")
    cloud.ledger.stops_at_first_violation = False
    cloud.queues.observer = observer = _Observer()
    cloud.bucket.observer, cloud.tables.on_write = observer, None
    with cloud.activate():
        workload.schedule(TASKS)
        settle(cloud)
        before = everything(cloud)
        stranger = Stranger(cloud, random, sorted({*known_ids(before, workload)}), observer.seen.copy())
        for _ in range(MESSAGES // SEEDS):
            cloud.simulation.scheduler.start(stranger.send, delay=random.uniform(0.0, 60.0))
        settle(cloud)
    after = everything(cloud)
    changed = {key: (before[key], after.get(key)) for key in before if after.get(key) != before[key]}
    assert changed == {}
