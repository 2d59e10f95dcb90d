"""Runs that die of memory, and their next runs in a larger size (`protocol §10.size.larger`)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from asya.heavy.lambdas.result_routing import ResultRouter
from asya.protocol.mesh_table import Batch, JobSize, MeshTable, SparkJob, WorkerSize
from tests.doubles.heavy import TABLE, HeavyWorld, done_result, failed_result, heavy_world

SIZES = tuple(JobSize(name=name, driver=WorkerSize(memory_mb=1024 * 2**n)) for n, name in enumerate(("s", "m", "l")))
KILLED = "Job failed. ExitCode: 137."


def table(*sizes: JobSize) -> MeshTable:
    def heavy(shape: str) -> SparkJob:
        return SparkJob(job=f"flights.{shape}", shape=shape, sizes=sizes)  # type: ignore[arg-type]

    actors = {
        name: replace(TABLE.actors[name], spark=heavy(shape), batch=Batch(size=10))
        for name, shape in (("clean", "payload"), ("stats", "dataframe"))
    }
    return replace(TABLE, actors={**TABLE.actors, **actors})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch, table(*SIZES)) as heavy:
        yield heavy


def start(world: HeavyWorld, *names: str, actor: str = "clean") -> None:
    for name in names:
        world.send(name, actor=actor)
    world.enqueue(actor)
    world.dispatch()


def end(world: HeavyWorld, number: int, details: str = KILLED, *, state: str = "FAILED") -> None:
    """Ends a run, routes its results, and starts what follows."""
    world.set_state(f"run{number}", state, details=details)
    while world.complete():
        pass
    while world.dispatch():
        pass


def runs(world: HeavyWorld, actor: str = "clean") -> list[tuple[str, list[str]]]:
    """The size and the envelopes of each run."""
    manifests = [world.manifest(number, actor) for number in range(1, len(world.emr.runs) + 1)]
    return [(each.size, sorted(member.id for member in each.members)) for each in manifests]


@pytest.mark.rule("10.size.larger", "10.size.larger.end")
def test_10_the_envelope_at_work_is_tried_once_in_each_size_and_then_charged(world: HeavyWorld) -> None:
    start(world, "a", "b", "c")
    for number in (1, 2):
        world.write_results(number, [], end="journal")
        end(world, number)
        if number == 1:
            # b and c, which were not at work, have a run in their own size.
            world.write_results(3, [done_result(0, 1), done_result(1, 2)])
            end(world, 3, "", state="SUCCESS")

    assert runs(world) == [("s", ["a", "b", "c"]), ("m", ["a"]), ("s", ["b", "c"]), ("l", ["a"])]
    assert [body["id"] for body in world.bodies("publish")] == ["b", "c"]
    assert world.bodies("clean") == []

    world.write_results(4, [], end="journal")
    end(world, 4)

    (retry,) = world.bodies("clean")
    assert (retry["id"], retry["status"]["attempt"]) == ("a", 2)
    assert "the driver had 4 GB" in retry["status"]["error"]["message"]
    assert "raise `spark.sizes.l.driver.memory` of clean" in retry["status"]["error"]["message"]


@pytest.mark.rule("10.size.larger")
def test_10_a_dataframe_job_runs_whole_in_the_next_size_before_it_is_halved(world: HeavyWorld) -> None:
    start(world, "a", "b", actor="stats")
    for number in (1, 2):
        world.write_results(number, [], actor="stats", end="journal", at_work=None)
        end(world, number, "java.lang.OutOfMemoryError: Java heap space")

    assert runs(world, "stats") == [("s", ["a", "b"]), ("m", ["a", "b"]), ("l", ["a", "b"])]

    world.write_results(3, [], actor="stats", end="journal", at_work=None)
    end(world, 3)
    assert runs(world, "stats")[3:] == [("l", ["a"]), ("l", ["b"])]


@pytest.mark.rule("10.size.larger.end")
def test_10_another_death_stays_in_its_size(world: HeavyWorld) -> None:
    start(world, "a", "b")
    world.write_results(1, [], end="journal")
    end(world, 1, "ExitCode: 1.")

    assert runs(world) == [("s", ["a", "b"]), ("s", ["b"])]
    assert [body["id"] for body in world.bodies("clean")] == ["a"]


@pytest.mark.rule("10.size.larger.call")
def test_10_a_call_that_ran_out_of_memory_is_no_failure_of_its_envelope(world: HeavyWorld) -> None:
    start(world, "a", "b", "c")
    memory = {"kind": "java.lang.OutOfMemoryError", "message": "Java heap space"}
    world.write_results(1, [done_result(0, 1), failed_result(1, **memory), failed_result(2, "a frame", **memory)])
    end(world, 1, "", state="SUCCESS")

    assert runs(world) == [("s", ["a", "b", "c"]), ("m", ["b"])]
    # The frame of c has left, so it fails as it did.
    assert [body["id"] for body in world.bodies("publish")] == ["a", "c"]
    record = world.services.records.get("clean", 1)
    assert record is not None
    assert record.outcomes is not None
    assert record.outcomes.text == "1 succeeded, 1 failed, 1 again"
    assert world.bodies("clean") == [], "no attempt is over"


@pytest.mark.rule("10.size.larger")
def test_10_a_completion_that_comes_twice_starts_no_two_runs(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(world, "a", "b")
    world.write_results(1, [], end="journal")
    world.set_state("run1", "FAILED", details=KILLED)

    def die(*_: object) -> None:
        raise RuntimeError("the function dies after the envelopes are pending, before the record says so")

    with monkeypatch.context() as patch:
        patch.setattr("asya.heavy.aws.run_records.RunRecords.advance", die)
        with pytest.raises(AssertionError):
            world.complete()
    # The sizes of a deployment in between change nothing of what is recorded.
    world.table = table(SIZES[0], SIZES[2], SIZES[1])
    later = datetime.now(UTC) + timedelta(hours=1)
    monkeypatch.setattr("asya.heavy.lambdas.services.SparkServices.now", lambda _: later)
    for _ in range(3):
        end(world, 1)

    assert runs(world) == [("s", ["a", "b"]), ("m", ["a"]), ("s", ["b"])]
    assert world.items("PENDING#") == []


@pytest.mark.rule("10.size.larger.call")
def test_10_a_call_that_is_routed_twice_is_pending_once(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    start(world, "a")
    world.write_results(1, [failed_result(0, kind="MemoryError", message="")])
    checkpoint = ResultRouter._checkpoint

    def die(router: ResultRouter) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("asya.heavy.aws.run_records.RunRecords.advance", lambda *_: None)
            checkpoint(router)
        raise RuntimeError("the function dies")

    with monkeypatch.context() as patch:
        patch.setattr(ResultRouter, "_checkpoint", die)
        world.set_state("run1", "SUCCESS")
        with pytest.raises(AssertionError):
            world.complete()
    world.table = table()
    later = datetime.now(UTC) + timedelta(hours=1)
    monkeypatch.setattr("asya.heavy.lambdas.services.SparkServices.now", lambda _: later)
    end(world, 1, "", state="SUCCESS")
    end(world, 1, "", state="SUCCESS")

    assert len(world.emr.runs) == 2, "one run more, although the sizes are gone"
    assert world.bodies("clean") == world.bodies("x-sink") == []
