"""Lanes under random schedules: several processes at once, which crash; messages that come twice, late and in any order.

Invariants: an occurrence has one task or was skipped, never both; with `skip` and `queue` no task of a lane begins while another
one runs; with `queue` and `debounce` nothing is lost.
"""

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from asya.capabilities.triggers.messages import slot_message
from asya.capabilities.triggers.occurrences import slot_key
from asya.protocol import ids, names
from asya.protocol.triggers import TriggerBatch
from asya.testing.deployment import Deployment, deploy
from asya.testing.services.faults import FaultProfile, Faults
from asya.testing.services.roles import role_id
from asya_infra.mesh_file.load import load_mesh
from tests.simulation.faults import random_profile

SEEDS = 100 if os.environ.get("ASYA_FULL_SIZE") else 4
SLOTS = 8
MINUTES = 60
ENDED = ("succeeded", "failed", "canceled")
MESH = """
namespace: shop
code: handlers
actors:
  greet: {handler: greetings.greet, max_receives: 20}
  bill: {handler: greetings.greet, max_receives: 20}
triggers:
  yearly: {route: [greet, bill], cron: "0 0 1 1 *", overlap: %s}
"""


class Watch:
    """Watches the records of tasks, and the claims of their ends, as they are written.

    Attributes:
        open: ids of tasks whose records have not ended.
        claimed: ids of tasks whose ends are claimed. They have ended, also if a crash delays the report to the record.
        starts: how often the record of each task was created.
        overlaps: ids of tasks whose records began while another task ran.
    """

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.claimed: set[str] = set()
        self.statuses: dict[str, str] = {}
        self.overlaps: list[str] = []

    def written(self, table: str, before: Any, after: Any) -> None:
        """Note a write of a record or a claim."""
        item = after or before
        if table.endswith("-sink") and "phase" in item and not item["provisional"]["BOOL"]:
            self.claimed.add(item["pk"]["S"])
        if not table.endswith("-tasks") or item["sk"]["S"] != "record":
            return
        task_id = item["pk"]["S"]
        if after is None:  # the queue of the actor has refused the first message
            self.open.discard(task_id)
            del self.statuses[task_id]
            return
        self.statuses[task_id] = after["status"]["S"]
        if after["status"]["S"] in ENDED:
            self.open.discard(task_id)
        else:
            if before is None and self.open - self.claimed:
                self.overlaps.append(task_id)
            self.open.add(task_id)


def slot_of(number: int) -> datetime:
    """A slot of the trigger."""
    return datetime(2000 + number, 1, 1, tzinfo=UTC)


SLOW = FaultProfile("slow", refusals=0.15, stalls=0.15, duplicates=0.3, until=1200.0)
"""Calls that take up to 40 s, and queues that refuse messages: processes lose the starts that they are at."""
_SHOWS_LOST_CLAIMS = 6
"""The seed that shows a lease of 35 s with an undo without a fence."""


def run(
    folder: Path, overlap: str, seed: int, profile: FaultProfile | None = None, **settings: Any
) -> tuple[Deployment, Watch]:
    """Send each slot once to three times in any order, and run the mesh until it is at rest.

    Args:
        folder: an empty folder.
        overlap: that of the trigger.
        seed: decides the faults, and the order of what happens at the same time.
        profile: the faults; drawn from the seed if there is none.
        settings: further settings of the trigger.
    """
    (folder / "handlers").mkdir(exist_ok=True)
    (folder / "handlers" / "greetings.py").write_text("def greet(payload):\n    return payload\n")
    (folder / "mesh.yaml").write_text(MESH % overlap)
    random, watch = Random(seed), Watch()
    mesh = deploy(load_mesh(folder / "mesh.yaml"), "file:///", {}, seed=seed, start=datetime(2026, 11, 25, tzinfo=UTC))
    mesh.table.triggers["yearly"] = replace(mesh.table.triggers["yearly"], **settings)
    mesh.tables.on_write = watch.written
    kind = random.choice(("fault-free", "crashes", "errors", "mixed", "outages", "repeats"))
    mesh.simulation.faults = Faults(random, profile or random_profile(random, kind))
    scheduler = mesh.simulation.scheduler
    url = names.queue_name("shop", names.TRIGGERS)
    spread = random.choice((1.0, 30.0, 300.0))
    with mesh.activate():
        for number in range(SLOTS):
            for _ in range(random.choice((1, 2, 3))):
                body = slot_message("yearly", slot_of(number)).decode()
                scheduler.start(partial(_send, mesh, url, body), delay=random.uniform(0.0, spread))
        for minute in range(1, MINUTES):
            scheduler.after(60.0 * minute, mesh.system.wake_minutely)
            scheduler.after(60.0 * minute, lambda: mesh.system.wake(names.DLQ))
        scheduler.run()
    return mesh, watch


def _send(mesh: Deployment, queue: str, body: str) -> None:
    mesh.queues.send(queue, body, sender=None, by=f"{role_id(names.TASK_SWEEP)}:session")


def tasks_table(mesh: Deployment) -> Any:
    """The items of the tasks table, of a mesh at rest: no lane waits, and there are no dead letters."""
    items = mesh.tables.tables[names.table_name("shop", "tasks")].items
    lanes = [msgspec.json.decode(item["state"]["S"]) for key, item in items.items() if key[1] == "trigger#lane"]
    dead = [
        message for name, queue in mesh.queues.queues.items() if name.endswith("-dlq") for message in queue.messages
    ]
    assert (lanes, dead) == ([{}], [])
    return items


def decisions(items: Any) -> dict[str, str]:
    """The decision about each slot, by the id of its task."""
    slots = [ids.occurrence_id("yearly", slot_key(slot_of(number))) for number in range(SLOTS)]
    return {task_id: items[f"TRIGGER#{task_id}", "trigger#decided"]["outcome"]["S"] for task_id in slots}


@pytest.mark.rule("16.lane.once", "16.overlap.skip", "16.overlap.queue", "16.overlap.cancel-previous")
@pytest.mark.parametrize(
    ("overlap", "statuses"),
    [
        ("skip", {"succeeded", "skipped"}),
        ("queue", {"succeeded"}),
        ("cancel-previous", {"succeeded", "canceled"}),
    ],
)
def test_16_random_schedules_keep_the_promises_of_overlap(tmp_path: Path, overlap: str, statuses: set[str]) -> None:
    """Each slot has exactly one task, or was skipped. No two tasks run at the same time."""
    found: set[str] = set()
    for seed in range(SEEDS):
        mesh, watch = run(tmp_path, overlap, seed)
        outcomes = decisions(tasks_table(mesh))
        assert (watch.overlaps, watch.open) == ([], set()), f"seed {seed}"
        assert {task_id for task_id, outcome in outcomes.items() if outcome != "skipped"} == set(watch.statuses), seed
        found |= {watch.statuses.get(task_id, outcome) for task_id, outcome in outcomes.items()}
    assert found == statuses


@pytest.mark.rule("13.start.fence", "13.start.lease", "16.overlap.queue")
def test_16_a_slow_process_never_lets_two_tasks_of_a_lane_run(tmp_path: Path) -> None:
    """Whatever it undoes late, a task that runs keeps its record and its owner."""
    for seed in (_SHOWS_LOST_CLAIMS, *range(SEEDS)):
        mesh, watch = run(tmp_path, "queue", seed, SLOW)
        items = tasks_table(mesh)
        assert (watch.overlaps, watch.open) == ([], set()), f"seed {seed}"
        owners = {items[task_id, "record"]["owner"]["S"] for task_id in decisions(items)}
        assert owners == {"trigger:yearly"}, f"seed {seed}"


@pytest.mark.rule("16.lane.once", "16.batch", "16.window")
def test_16_random_schedules_gather_each_occurrence_in_one_batch(tmp_path: Path) -> None:
    """Copies, crashes and processes at once neither lose one nor repeat it."""
    for seed in range(SEEDS):
        mesh, watch = run(tmp_path, "allow", seed, batch=TriggerBatch(size=3, window=30.0))
        items = tasks_table(mesh)
        assert set(decisions(items).values()) == {"gathered"}
        batches = [msgspec.json.decode(items[task_id, "record"]["result"]["S"])["items"] for task_id in watch.statuses]
        slots = sorted(item["date"] for batch in batches for item in batch)
        assert slots == [slot_of(number).strftime("%Y-%m-%d") for number in range(SLOTS)], f"seed {seed}"
        assert max(map(len, batches)) <= 3
