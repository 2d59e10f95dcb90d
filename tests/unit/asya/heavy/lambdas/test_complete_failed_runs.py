"""The envelopes of a failed run, from its end to their next run or their error (`protocol §10`)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from asya.protocol.job_runs import Manifest
from asya.protocol.mesh_table import Actor, Batch, MeshTable, Policy, Resiliency, Rule, SparkApplication, SparkJob
from tests.doubles.heavy import BUCKET, HeavyWorld, TimedContext, done_result, heavy_world


def table(size: int, attempts: int = 1) -> MeshTable:
    policies = {"again": Policy(max_attempts=attempts, initial_delay=0.0)}
    resiliency = Resiliency(policies=policies, rules=(Rule(errors=("SparkJobFailed",), policy="again"),))

    def heavy(shape: str) -> Actor:
        job = SparkJob(job=f"flights.{shape}", shape=shape)  # type: ignore[arg-type]
        return Actor(kind="spark", spark=job, batch=Batch(size=size), resiliency=resiliency)

    return MeshTable(
        namespace="flights",
        actors={
            "clean": heavy("payload"),
            "stats": heavy("dataframe"),
            "publish": Actor(kind="handler", handler="f.p"),
        },
        spark=SparkApplication(start_per_second=1000.0, start_burst=1000),
    )


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., HeavyWorld]]:
    with ExitStack() as open_worlds:

        def open_world(size: int, attempts: int = 1) -> HeavyWorld:
            return open_worlds.enter_context(heavy_world(monkeypatch, table(size, attempts)))

        yield open_world


def send(world: HeavyWorld, actor: str, count: int) -> None:
    for number in range(count):
        world.send(f"e{number:03d}", number, actor=actor)
        if number % 10 == 9:
            world.enqueue(actor)
    world.enqueue(actor)


def run_all(
    world: HeavyWorld, actor: str, poison_index: Callable[[Manifest], int | None], stage: str = "working"
) -> list[int]:
    """Runs all envelopes to their end; returns the sizes of the runs.

    Args:
        poison_index: gives the index of the member that kills the process, else None.
    """
    sizes: list[int] = []
    while True:
        while world.dispatch():
            pass
        if len(world.emr.runs) == len(sizes):
            return sizes
        for number in range(len(sizes) + 1, len(world.emr.runs) + 1):
            run = world.manifest(number, actor)
            sizes.append(len(run.members))
            poison = poison_index(run)
            whole = [done_result(index, f"result of {member.id}") for index, member in enumerate(run.members)]
            if poison is None:
                world.write_results(number, whole, actor=actor)
            elif run.shape == "payload":
                world.write_results(number, whole[:poison], actor=actor, end="journal")
            elif stage != "absent":
                world.write_results(number, [], actor=actor, end="journal", at_work=None, stage=stage)
            world.set_state(f"run{number}", "SUCCESS" if poison is None else "FAILED", details="ExitCode: 9.")
            while world.complete():
                pass
        world.enqueue(actor)


def index_of(name: str) -> Callable[[Manifest], int | None]:
    return lambda run: next((index for index, member in enumerate(run.members) if member.id == name), None)


def ends(world: HeavyWorld) -> tuple[list[str], list[dict[str, object]]]:
    """The ids that continued, and the envelopes that failed."""
    return [body["id"] for body in world.bodies("publish")], world.bodies("x-sink")


@pytest.mark.rule("10.death.at-work")
@pytest.mark.slow
@pytest.mark.parametrize(("actor", "attempts", "most"), [("clean", 1, 3), ("clean", 3, 5), ("stats", 2, 8)])
def test_10_an_envelope_that_kills_its_process_fails_alone(
    make: Callable[..., HeavyWorld], actor: str, attempts: int, most: int
) -> None:
    world = make(8, attempts)
    send(world, actor, 8)

    sizes = run_all(world, actor, index_of("e005"))

    assert sizes[0] == 8
    assert len(sizes) <= most
    continued, failed = ends(world)
    assert continued == [f"e00{number}" for number in range(8) if number != 5]
    (poison,) = failed
    status = poison["status"]
    assert poison["id"] == "e005"
    assert isinstance(status, dict)
    assert (status["phase"], status["error"]["type"], status["attempt"]) == ("failed", "SparkJobFailed", attempts)
    message = status["error"]["message"]
    assert "ExitCode: 9" in message
    assert ("while this envelope was at work" if actor == "clean" else "with this envelope alone in it") in message
    assert "s3://asya-flights-bucket/runs/" in message
    assert world.items("OPEN#") == world.items("PENDING#") == []


@pytest.mark.rule("10.death.bounded")
@pytest.mark.slow
@pytest.mark.parametrize("stage", ["absent", "starting"])
def test_10_failing_starts_fail_all_envelopes_in_a_bounded_number_of_runs(
    make: Callable[..., HeavyWorld], stage: str
) -> None:
    world = make(9)
    send(world, "stats", 9)

    sizes = run_all(world, "stats", lambda _: 0, stage)

    assert len(sizes) == 7
    continued, failed = ends(world)
    assert (continued, len(failed)) == ([], 9)
    messages = {str(body["status"]["error"]["message"]) for body in failed}  # type: ignore[index]
    assert all("before the job was called, even after halving" in text for text in messages)


@pytest.mark.slow
@pytest.mark.rule("10.death.once")
def test_10_completing_a_failed_run_twice_requeues_once(
    make: Callable[..., HeavyWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(10)
    send(world, "clean", 5)
    world.dispatch()
    world.write_results(1, [], end="journal")
    world.set_state("run1", "FAILED", details="killed")

    def fail(*_: object) -> None:
        raise RuntimeError("the function fails after the requeue and before the record")

    with monkeypatch.context() as patch:
        patch.setattr("asya.heavy.aws.run_records.RunRecords.advance", fail)
        with pytest.raises(AssertionError):
            world.complete()
    assert len(world.items("PENDING#")) == 4
    world.services.requests.ensure("clean", 0, now=datetime.now(UTC))
    world.dispatch()
    assert len(world.emr.runs) == 1  # no member runs before all are requeued

    later = datetime.now(UTC) + timedelta(hours=1)  # the lease has ended
    monkeypatch.setattr("asya.heavy.lambdas.services.SparkServices.now", lambda _: later)
    for _ in range(2):
        world.set_state("run1", "FAILED", details="killed")
        world.complete()
        world.dispatch()
    assert [member.id for member in world.manifest(2).members] == ["e001", "e002", "e003", "e004"]
    assert (len(world.emr.runs), world.items("PENDING#")) == (2, [])
    world.set_state("run1", "FAILED", details="killed")
    world.complete()
    assert world.items("PENDING#") == []


@pytest.mark.rule("10.death.once")
def test_10_a_late_removal_of_a_failed_runs_members_keeps_the_returned_ones(make: Callable[..., HeavyWorld]) -> None:
    world = make(10)
    send(world, "clean", 4)
    world.dispatch()
    world.write_results(1, [], end="journal")
    world.set_state("run1", "FAILED")
    world.complete()

    world.services.pending.remove("clean", world.manifest(1).members)

    world.dispatch()
    assert [member.id for member in world.manifest(2).members] == ["e001", "e002", "e003"]


@pytest.mark.rule("10.timeout.rest")
@pytest.mark.slow
def test_10_members_without_time_run_again_uncharged(make: Callable[..., HeavyWorld]) -> None:
    world = make(10)
    send(world, "clean", 5)
    world.dispatch()
    world.write_results(1, [done_result(0, "a"), done_result(1, "b")], unreached=2)
    world.set_state("run1", "SUCCESS")
    world.complete()
    world.dispatch()

    assert [(member.id, member.attempt) for member in world.manifest(2).members] == [
        ("e002", 1), ("e003", 1), ("e004", 1),
    ]  # fmt: skip
    assert world.bodies("x-sink") == []


@pytest.mark.rule("10.timeout.rest")
@pytest.mark.parametrize("unreached", [0, 1, 2, 99])
def test_10_a_run_without_any_result_had_time_for_its_first_member(
    make: Callable[..., HeavyWorld], unreached: int
) -> None:
    """Code of the job may write the commit; uncharged it would start runs for ever."""
    world = make(10)
    send(world, "clean", 2)
    world.dispatch()
    world.write_results(1, [], unreached=unreached)
    world.set_state("run1", "SUCCESS")
    world.complete()
    continued, failed = ends(world)
    assert continued == []
    assert [body["status"]["error"]["type"] for body in failed] == ["SparkJobFailed"] * 2


@pytest.mark.rule("10.death.success")
def test_10_a_success_without_a_commit_is_a_failure(make: Callable[..., HeavyWorld]) -> None:
    world = make(10)
    send(world, "clean", 3)
    world.dispatch()
    world.write_results(1, [], end="journal")
    world.set_state("run1", "SUCCESS")
    world.complete()
    world.dispatch()

    continued, failed = ends(world)
    assert continued == []
    assert [body["id"] for body in failed] == ["e000"]
    assert [member.id for member in world.manifest(2).members] == ["e001", "e002"]


@pytest.mark.rule("10.death.at-work")
@pytest.mark.parametrize("is_bad", [True, False])
def test_10_an_envelope_that_others_ran_before_is_charged_only_if_it_kills_a_run_of_its_own(
    make: Callable[..., HeavyWorld], is_bad: bool
) -> None:
    world = make(10)
    send(world, "clean", 4)
    world.dispatch()
    world.write_results(1, [done_result(0, "a"), done_result(1, "b")], end="journal")
    world.set_state("run1", "FAILED", details="ExitCode: 137.")
    world.complete()

    assert ends(world) == (["e000", "e001"], [])
    world.dispatch()
    (suspect,) = world.manifest(2).members
    assert (suspect.id, suspect.attempt, suspect.suspected_in) == ("e002", 1, 1)

    world.write_results(2, [] if is_bad else [done_result(0, "c")], end="journal" if is_bad else "commit")
    world.set_state("run2", "FAILED" if is_bad else "SUCCESS", details="ExitCode: 137.")
    world.complete()
    world.dispatch()

    continued, failed = ends(world)
    assert continued == ["e002"] * (not is_bad)
    assert [body["id"] for body in failed] == ["e002"] * is_bad
    assert [member.id for member in world.manifest(3).members] == ["e003"]


@pytest.mark.rule("10.death.bounded")
@pytest.mark.slow
def test_10_forty_envelopes_that_all_kill_their_process_take_32_runs(make: Callable[..., HeavyWorld]) -> None:
    world = make(40)
    send(world, "clean", 40)

    sizes = run_all(world, "clean", lambda _: 0)

    assert sizes == [*range(40, 8, -1)]
    continued, failed = ends(world)
    assert (continued, len(failed)) == ([], 40)
    last = failed[-1]["status"]["error"]["message"]  # type: ignore[index]
    assert "32 runs in a row died before any of their envelopes finished" in last


@pytest.mark.rule("10.death.told")
def test_10_the_error_names_the_exception_of_the_drivers_python(make: Callable[..., HeavyWorld]) -> None:
    world = make(10)
    send(world, "clean", 1)
    world.dispatch()
    world.write_results(1, [], end="journal")
    error = b'{"type":"MemoryError","message":"no room","mro":["Exception"],"traceback":"Traceback: here"}'
    world.s3.put_object(Bucket=BUCKET, Key="runs/clean/0000000001/attempts/a1/error.json", Body=error)
    world.set_state("run1", "FAILED", details="ExitCode: 1")
    world.complete()

    (failed,) = world.bodies("x-sink")
    error_block = failed["status"]["error"]
    assert (error_block["type"], error_block["traceback"]) == ("SparkJobFailed", "Traceback: here")
    assert "The driver's Python ended with MemoryError: no room" in error_block["message"]


@pytest.mark.rule("10.double")
def test_10_the_failure_of_a_duplicate_run_changes_nothing(make: Callable[..., HeavyWorld]) -> None:
    world = make(10)
    send(world, "clean", 2)
    world.dispatch()
    world.emr.runs["double"] = {**world.emr.runs["run1"], "state": "RUNNING"}
    world.set_state("run1", "RUNNING")
    world.set_state("double", "FAILED")
    while world.complete():
        pass
    assert world.items("PENDING#") == []
    record = world.services.records.get("clean", 1)
    assert record is not None
    assert record.resolution is None

    world.write_results(1, [done_result(0, "a"), done_result(1, "b")])
    world.set_state("run1", "SUCCESS")
    world.complete(TimedContext())
    assert len(world.bodies("publish")) == 2


@pytest.mark.rule("10.died.memory")
def test_10_the_error_of_a_run_without_memory_names_the_key_to_raise(make: Callable[..., HeavyWorld]) -> None:
    world = make(10)
    send(world, "clean", 1)
    world.dispatch()
    world.set_state("run1", "FAILED", details="ExitCode: 137.")
    world.complete()
    (failed,) = ends(world)[1]
    key = "raise `spark.driver.memory` of clean in the mesh file"
    assert key in failed["status"]["error"]["message"]
    record = world.services.records.get("clean", 1)
    assert record is not None
    assert key in record.details
