"""A heavy actor whose job runs linger, on the doubles of `tests.doubles.heavy`."""

import json
from datetime import timedelta

from msgspec.structs import replace

from asya.heavy.aws.completion_messages import encode_commit
from asya.heavy.aws.run_records import RunRecord
from asya.protocol.job_runs import Place, RunFolder, presence_key
from asya.protocol.mesh_table import Batch, SparkJob
from asya.protocol.times import format_time
from tests.doubles.heavy import BUCKET, TABLE, HeavyWorld, done_result

LINGERING = replace(
    TABLE,
    actors={
        **TABLE.actors,
        "clean": replace(
            TABLE.actors["clean"],
            spark=SparkJob(job="flights.clean", linger=300.0, max_run=3600.0),
            batch=Batch(size=3, window=15.0),
        ),
    },
)


def arrive(world: HeavyWorld, *ids: str) -> None:
    """Make envelopes pending."""
    for name in ids:
        world.send(name)
    world.enqueue()


def start_resident(world: HeavyWorld) -> RunRecord:
    """Start run 1 with three envelopes, and let its driver commit and wait for batch 1."""
    arrive(world, "a", "b", "c")
    world.dispatch()
    world.set_state("run1", "RUNNING")
    world.complete()
    commit(world, 1, 3)
    world.complete()
    idle(world, batch=1)
    return record(world, 1)


def commit(world: HeavyWorld, number: int, members: int, place: Place | None = None, *, event: bool = True) -> None:
    """Write the results of a run, and its commit."""
    folder = RunFolder("clean", number, place)
    lines = [line for index in range(members) for line in done_result(index, {"n": index})]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    part = {"file": "part-000000.jsonl", "first": 0, "last": members - 1, "lines": len(lines), "size": len(body)}
    put(world, f"{folder.attempts}20260101T000000-a1/part-000000.jsonl", body)
    run_id = f"asya.flights.clean.{number:010d}"
    content = {"run_id": run_id, "attempt": "a1", "finished_at": "2026-01-01T00:00:00Z", "parts": [part]}
    key = f"{folder.attempts}20260101T000000-a1/commit.json"
    put(world, key, json.dumps(content).encode())
    if event:
        world.put("x-completion", encode_commit(BUCKET, key))


def idle(world: HeavyWorld, *, batch: int, number: int = 1, age: float = 0.0) -> None:
    """Let the driver say that it waits for a batch."""
    at = format_time(world.services.now() - timedelta(seconds=age))
    content = {"at": at, "batch": batch, "since": at}
    put(world, presence_key("clean", number), json.dumps(content).encode())


def put(world: HeavyWorld, key: str, body: bytes) -> None:
    world.s3.put_object(Bucket=BUCKET, Key=key, Body=body)


def record(world: HeavyWorld, number: int) -> RunRecord:
    found = world.services.records.get("clean", number)
    assert found is not None
    return found
