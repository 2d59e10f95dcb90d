"""The fate of the envelopes of a failed run (`protocol §10`)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from asya.protocol.job_runs import Half, Manifest, Member
from asya.protocol.mesh_table import Actor, Batch, MeshTable, Policy, Resiliency, Rule, SparkApplication, SparkJob
from asya.spark import run_failures, run_formation
from asya.spark.run_failures import (
    CHARGED,
    FAILURE_LIMIT,
    NO_EXECUTOR,
    START_FAILURE_LIMIT,
    WAITING,
    FailedRun,
    FailureDecision,
)
from tests.doubles.heavy import BUCKET, HeavyWorld, TimedContext, done_result, heavy_world
from tests.unit.memory_tables import memory_tables

NOTHING = FailedRun(missing=(0, 1, 2), stage="absent", at_work=None, failures=1)


def manifest(*names: str, shape: str = "payload", half: Half | None = None) -> Manifest:
    return Manifest(
        run_id="asya.flights.clean.0000000007",
        namespace="flights",
        actor="clean",
        number=7,
        formed_at="2026-01-01T00:00:00Z",
        job="flights.clean",
        shape=shape,  # type: ignore[arg-type]
        timeout=60.0,
        time_limit=5,
        client_token="t",
        members=tuple(
            Member(id=name, position=0, attempt=1, admitted_at="2026-01-01T00:00:00Z", half=half) for name in names
        ),
    )


@pytest.mark.rule("10.death.at-work")
@pytest.mark.parametrize(
    ("failed_run", "decision"),
    [
        (FailedRun(missing=(1, 2), stage="working", at_work=1, failures=1), FailureDecision("again", 1)),
        (FailedRun(missing=(1,), stage="working", at_work=1, failures=1), FailureDecision("again", 1)),
        (FailedRun(missing=(0, 1, 2), stage="working", at_work=None, failures=1), FailureDecision("halved")),
        (FailedRun(missing=(0, 1, 2), stage="starting", at_work=None, failures=1), FailureDecision("halved")),
        (FailedRun(missing=(0, 1, 2), stage="absent", at_work=None, failures=START_FAILURE_LIMIT), CHARGED),
        (
            FailedRun(missing=(0, 1, 2), stage="working", at_work=None, failures=START_FAILURE_LIMIT),
            FailureDecision("halved"),
        ),
        (FailedRun(missing=(0, 1, 2), stage="working", at_work=None, failures=FAILURE_LIMIT), CHARGED),
        (FailedRun(missing=(2,), stage="absent", at_work=None, failures=1), CHARGED),
        (
            FailedRun(missing=(1, 2), stage="working", at_work=None, failures=1),
            FailureDecision("again"),
        ),  # failed between two envelopes
        (
            FailedRun(missing=(1, 2), stage="working", at_work=0, failures=1),
            FailureDecision("again"),
        ),  # its result is there
        (FailedRun(missing=(), stage="working", at_work=None, failures=1), CHARGED),
    ],
)
def test_10_who_is_charged(failed_run: FailedRun, decision: FailureDecision) -> None:
    assert run_failures.decide(manifest("a", "b", "c"), failed_run) == decision


def test_10_a_dataframe_run_that_failed_within_its_results_is_halved() -> None:
    failed_run = FailedRun(missing=(1, 2), stage="working", at_work=None, failures=1)
    assert run_failures.decide(manifest("a", "b", "c", shape="dataframe"), failed_run) == FailureDecision("halved")


@pytest.mark.rule("10.death.halved")
def test_10_halves_share_their_origin_and_keep_apart() -> None:
    first = run_failures.returned_members(manifest(*"abcde"), FailureDecision("halved"), (0, 1, 2, 3, 4))
    assert [(first[n].half.side, first[n].half.size) for n in range(5) if first[n].half] == [  # type: ignore[union-attr]
        (0, 3), (0, 3), (0, 3), (1, 2), (1, 2),
    ]  # fmt: skip
    assert {member.returned_by for member in first.values()} == {7}
    half = first[0].half
    again = run_failures.returned_members(manifest("a", "b", half=half), FailureDecision("halved"), (0, 1))
    assert {member.half.origin for member in again.values() if member.half} == {7}
    assert run_failures.origin(manifest("a", half=half)) == 7
    single = run_failures.returned_members(manifest("a", "b", half=half), FailureDecision("again", 0), (0, 1))
    assert [(index, member.half) for index, member in single.items()] == [(1, None)]


@pytest.mark.rule("10.busy.no-room")
def test_10_members_wait_for_capacity_since_their_first_run_without_it() -> None:
    first = run_failures.returned_members(manifest("a", "b"), WAITING, (1,))
    assert list(first) == [1]
    again = replace(manifest("a"), formed_at="2026-01-01T07:00:00Z", members=(first[1],))
    second = run_failures.returned_members(again, WAITING, (0,))[0]
    assert first[1].waiting_since == second.waiting_since == "2026-01-01T00:00:00Z"
    assert second.without_executor == 0
    ran = run_failures.returned_members(replace(again, members=(second,)), FailureDecision("again"), (0,))[0]
    assert ran.waiting_since is None


@pytest.mark.rule("10.busy.no-executor")
def test_10_a_third_run_without_an_executor_charges_its_members_and_no_newer_one() -> None:
    members = manifest("a", "b").members
    for count in (1, 2):
        run = replace(manifest(), members=members[:1])
        members = (run_failures.returned_members(run, NO_EXECUTOR, (0,))[0], *members[1:])
        assert members[0].without_executor == count

    third = replace(manifest(), members=members)
    back = run_failures.returned_members(third, NO_EXECUTOR, (0, 1))

    assert [(index, member.without_executor) for index, member in back.items()] == [(1, 1)]
    # A run that got executors ends the row.
    got_one = run_failures.returned_members(third, FailureDecision("again"), (0, 1))
    assert {member.without_executor for member in got_one.values()} == {0}


@pytest.mark.rule("10.death.halved")
def test_10_only_one_group_forms_a_run_and_returned_members_wait_for_the_close() -> None:
    (a, b, c, d) = manifest(*"abcd").members
    halves = [replace(member, returned_by=7, half=Half(run=7, side=0, size=2, origin=7)) for member in (a, b)]
    others = [replace(c, is_suspect=True), d]

    selection = run_formation.select([*halves, *others], 10, is_closed=lambda _: True)
    assert ([member.id for member in selection.members], selection.more) == (["a", "b"], True)
    selection = run_formation.select([*halves, *others], 10, is_closed=lambda _: False)
    assert ([member.id for member in selection.members], selection.more) == (["c"], True)
    assert not run_formation.select(halves, 10, is_closed=lambda _: False).more  # the close sends a request


# The whole path


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
            open_worlds.enter_context(memory_tables())
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
@pytest.mark.parametrize(("actor", "attempts", "most"), [("clean", 1, 2), ("clean", 3, 4), ("stats", 2, 8)])
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


def count_runs(members: Sequence[Member], shape: str, poison_ids: set[str]) -> tuple[int, list[str]]:
    """The number of runs and the charged ids, by the decisions of completion and dispatcher."""
    waiting, charged, failures, number = list(members), [], 0, 0
    while waiting:
        number += 1
        selection = run_formation.select(waiting, 10_000).members
        waiting = [member for member in waiting if member not in selection]
        run = replace(manifest(shape=shape), members=selection, number=number)
        places = [index for index, member in enumerate(selection) if member.id in poison_ids]
        if not places:
            continue
        failures += 1
        done_before = places[0] if shape == "payload" else 0
        missing = range(done_before, len(selection))
        at_work = places[0] if shape == "payload" else None
        failed_run = FailedRun(missing=missing, stage="working", at_work=at_work, failures=failures)
        decision = run_failures.decide(run, failed_run)
        back = run_failures.returned_members(run, decision, missing)
        charged += [selection[index].id for index in missing if index not in back]
        waiting += back.values()
    return number, charged


@pytest.mark.rule("10.death.halved")
@pytest.mark.parametrize(("shape", "most"), [("payload", 2), ("dataframe", 17)])
def test_10_few_runs_isolate_any_of_200_envelopes(shape: str, most: int) -> None:
    members = manifest(*(f"e{number:03d}" for number in range(200))).members
    for poison in range(200):
        number, charged = count_runs(members, shape, {f"e{poison:03d}"})
        assert charged == [f"e{poison:03d}"]
        assert number <= most


def test_10_two_bad_envelopes_among_a_thousand_are_isolated() -> None:
    members = manifest(*(f"e{number:03d}" for number in range(1000))).members
    number, charged = count_runs(members, "dataframe", {"e017", "e903"})
    assert sorted(charged) == ["e017", "e903"]
    assert number <= 41


@pytest.mark.rule("10.death.bounded")
def test_10_failures_of_all_envelopes_in_user_code_are_bounded() -> None:
    members = manifest(*(f"e{number:03d}" for number in range(1000))).members
    number, charged = count_runs(members, "dataframe", {member.id for member in members})
    assert len(charged) == 1000
    assert number <= 2 * FAILURE_LIMIT


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


@pytest.mark.rule("10.death.once")
def test_10_completing_a_failed_run_twice_requeues_once(
    make: Callable[..., HeavyWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(10)
    send(world, "clean", 5)
    world.dispatch()
    world.write_results(1, [done_result(0, "a")], end="journal")
    world.set_state("run1", "FAILED", details="killed")

    def fail(*_: object) -> None:
        raise RuntimeError("the function fails after the requeue and before the record")

    with monkeypatch.context() as patch:
        patch.setattr("asya.spark.aws.run_records.RunRecords.advance", fail)
        with pytest.raises(AssertionError):
            world.complete()
    assert len(world.items("PENDING#")) == 3
    world.services.requests.ensure("clean", 0, now=datetime.now(UTC))
    world.dispatch()
    assert len(world.emr.runs) == 1  # no member runs before all are requeued

    later = datetime.now(UTC) + timedelta(hours=1)  # the lease has ended
    monkeypatch.setattr("asya.spark.lambdas.services.SparkServices.now", lambda _: later)
    for _ in range(2):
        world.set_state("run1", "FAILED", details="killed")
        world.complete()
        world.dispatch()
    assert [member.id for member in world.manifest(2).members] == ["e002", "e003", "e004"]
    assert (len(world.emr.runs), world.items("PENDING#")) == (2, [])
    world.set_state("run1", "FAILED", details="killed")
    world.complete()
    assert world.items("PENDING#") == []


@pytest.mark.rule("10.death.once")
def test_10_a_late_removal_of_a_failed_runs_members_keeps_the_returned_ones(make: Callable[..., HeavyWorld]) -> None:
    world = make(10)
    send(world, "clean", 4)
    world.dispatch()
    world.write_results(1, [done_result(0, "a")], end="journal")
    world.set_state("run1", "FAILED")
    world.complete()

    world.services.pending.remove("clean", world.manifest(1).members)

    world.dispatch()
    assert [member.id for member in world.manifest(2).members] == ["e002", "e003"]


@pytest.mark.rule("10.timeout.rest")
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


@pytest.mark.rule("10.death.success")
def test_10_a_success_without_a_commit_is_a_failure(make: Callable[..., HeavyWorld]) -> None:
    world = make(10)
    send(world, "clean", 3)
    world.dispatch()
    world.write_results(1, [done_result(0, "a")], end="journal")
    world.set_state("run1", "SUCCESS")
    world.complete()
    world.dispatch()

    continued, failed = ends(world)
    assert continued == ["e000"]
    assert [body["id"] for body in failed] == ["e001"]
    assert [member.id for member in world.manifest(2).members] == ["e002"]


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
