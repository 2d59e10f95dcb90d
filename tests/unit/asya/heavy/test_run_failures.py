"""The fate of the envelopes of a failed run (`protocol §10`)."""

from collections.abc import Sequence
from dataclasses import replace as replace_of
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from asya.heavy import run_failures, run_formation
from asya.heavy.run_failures import (
    CHARGED,
    DEATH_LIMIT,
    FAILURE_LIMIT,
    NO_EXECUTOR,
    START_FAILURE_LIMIT,
    WAITING,
    FailedRun,
    FailureDecision,
)
from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import Half, Manifest, Member
from asya.protocol.mesh_table import Actor, SparkJob


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


@pytest.mark.rule("10.size.larger")
@pytest.mark.parametrize(
    ("failed_run", "shape", "suspects", "larger"),
    [
        # Those at work, also the first and only one, which a death of another kind would convict.
        (FailedRun(missing=(0, 1, 2), stage="working", at_work=(0,), failures=1), "payload", (0,), ["a"]),
        (
            FailedRun(missing=(1, 2), stage="working", at_work=(1, 2), is_first=False, failures=1),
            "payload",
            (1, 2),
            ["b", "c"],
        ),
        (FailedRun(missing=(0, 1, 2), stage="working", failures=32), "dataframe", (), ["a", "b", "c"]),
        (FailedRun(missing=(2,), stage="working", failures=32), "dataframe", (), ["c"]),
        (FailedRun(missing=(0, 1, 2), stage="absent", failures=4), "payload", (), ["a", "b", "c"]),
    ],
)
def test_10_a_death_of_memory_charges_nobody_while_there_is_a_larger_size(
    failed_run: FailedRun, shape: str, suspects: tuple[int, ...], larger: list[str]
) -> None:
    run = manifest("a", "b", "c", shape=shape)
    decision = run_failures.decide(run, replace_of(failed_run, larger="large"))
    assert decision == FailureDecision("larger", suspects=suspects)

    back = run_failures.returned_members(run, replace_of(decision, larger="large"), failed_run.missing)
    assert list(back) == list(failed_run.missing)
    assert [member.id for member in back.values() if member.size == "large"] == larger
    assert {member.size for member in back.values()} <= {"", "large"}
    assert all(member.attempt == 1 and member.returned_by == 7 and member.half is None for member in back.values())


@pytest.mark.rule("10.size.larger")
def test_10_a_run_that_died_between_two_envelopes_runs_on_in_its_size() -> None:
    failed_run = FailedRun(missing=(1, 2), stage="working", failures=1, larger="large")
    assert run_failures.decide(manifest("a", "b", "c"), failed_run) == FailureDecision("again")


@pytest.mark.rule("10.size.larger.call")
@pytest.mark.parametrize(
    ("kind", "mro", "message", "is_memory"),
    [
        ("java.lang.OutOfMemoryError", (), "Java heap space", True),
        ("org.apache.spark.SparkException", ("java.lang.OutOfMemoryError",), "Job aborted", True),
        ("MemoryError", ("Exception",), "", True),
        ("numpy.exceptions._ArrayMemoryError", ("MemoryError", "Exception"), "Unable to allocate", True),
        (
            "org.apache.spark.SparkException",
            (),
            "Job aborted due to stage failure: ExecutorLostFailure (executor 1 exited caused by one of the running tasks) "
            "Reason: Command exited with code 137",
            True,
        ),
        (
            "org.apache.spark.SparkException",
            (),
            "The executor with id 2 exited with exit code 137(SIGKILL, possible container OOM).",
            True,
        ),
        ("ValueError", ("Exception",), "137 rows", False),
        ("shop.OutOfMemory", (), "", False),
    ],
)
def test_10_what_ran_out_of_memory(kind: str, mro: tuple[str, ...], message: str, is_memory: bool) -> None:
    assert run_failures.failed_for_memory(ErrorInfo(type=kind, message=message, mro=mro)) is is_memory


@pytest.mark.rule("10.death.at-work")
@pytest.mark.parametrize(
    ("failed_run", "decision"),
    [
        (
            FailedRun(missing=(0, 1, 2), stage="working", at_work=(0,), failures=1),
            FailureDecision("again", convicted=0),
        ),
        (
            FailedRun(missing=(1, 2), stage="working", at_work=(1,), is_first=False, failures=1),
            FailureDecision("again", suspects=(1,)),
        ),
        (
            FailedRun(missing=(2,), stage="working", at_work=(2,), is_first=False, failures=1),
            FailureDecision("again", suspects=(2,)),
        ),
        (
            FailedRun(missing=(0, 1, 2), stage="working", at_work=(0, 1), is_first=False, failures=1),
            FailureDecision("again", suspects=(0, 1)),
        ),
        (
            # The result of the other one at work is there.
            FailedRun(missing=(1, 2), stage="working", at_work=(0, 1), is_first=False, failures=1),
            FailureDecision("again", suspects=(1,)),
        ),
        (FailedRun(missing=(0, 1, 2), stage="working", failures=1), FailureDecision("halved")),
        (FailedRun(missing=(0, 1, 2), stage="starting", failures=1), FailureDecision("halved")),
        (FailedRun(missing=(0, 1, 2), stage="absent", failures=START_FAILURE_LIMIT), CHARGED),
        (
            FailedRun(missing=(0, 1, 2), stage="working", failures=START_FAILURE_LIMIT),
            FailureDecision("halved"),
        ),
        (FailedRun(missing=(0, 1, 2), stage="working", failures=FAILURE_LIMIT), CHARGED),
        # It failed after the last call, before the last result was written.
        (FailedRun(missing=(2,), stage="working", is_first=False, failures=1), FailureDecision("again")),
        (
            FailedRun(missing=(1, 2), stage="working", failures=1),
            FailureDecision("again"),
        ),  # failed between two envelopes
        (
            FailedRun(missing=(1, 2), stage="working", at_work=(0,), failures=1),
            FailureDecision("again"),
        ),  # its result is there
        (FailedRun(missing=(), stage="working", failures=1), CHARGED),
    ],
)
def test_10_who_is_charged(failed_run: FailedRun, decision: FailureDecision) -> None:
    assert run_failures.decide(manifest("a", "b", "c"), failed_run) == decision


def test_10_a_dataframe_run_that_failed_within_its_results_is_halved() -> None:
    failed_run = FailedRun(missing=(1, 2), stage="working", failures=1)
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
    single = run_failures.returned_members(manifest("a", "b", half=half), FailureDecision("again", convicted=0), (0, 1))
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
    others = [replace(c, was_charged=True), d]

    selection = run_formation.select([*halves, *others], 10, is_closed=lambda _: True)
    assert ([member.id for member in selection.members], selection.more) == (["a", "b"], True)
    selection = run_formation.select([*halves, *others], 10, is_closed=lambda _: False)
    assert ([member.id for member in selection.members], selection.more) == (["c"], True)
    assert not run_formation.select(halves, 10, is_closed=lambda _: False).more  # the close sends a request


def count_runs(
    members: Sequence[Member], shape: str, poison_ids: set[str], *, parallel: int = 1
) -> tuple[int, list[str]]:
    """The number of runs and the charged ids, by the decisions of completion and dispatcher.

    A payload job has `parallel` envelopes at work, and all before the first bad one have finished and written their results.
    """
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
        started = places[0] + 1
        at_once = 1 if selection[0].suspected_in else parallel
        at_work = range(max(0, started - at_once), started) if shape == "payload" else ()
        missing = range(at_work[0] if at_work else 0, len(selection))
        failed_run = FailedRun(
            missing=missing, stage="working", at_work=at_work, is_first=started == 1, failures=failures
        )
        decision = run_failures.decide(run, failed_run)
        back = run_failures.returned_members(run, decision, missing)
        charged += [selection[index].id for index in missing if index not in back]
        # As on the table: by the time at which they became pending, which a return does not change.
        waiting = sorted([*waiting, *back.values()], key=lambda member: member.id)
    return number, charged


@pytest.mark.rule("10.death.halved")
@pytest.mark.parametrize(("shape", "most"), [("payload", 3), ("dataframe", 17)])
@pytest.mark.slow
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
@pytest.mark.parametrize(("count", "most"), [(12, 12), (1000, DEATH_LIMIT)])
def test_10_a_row_of_deaths_in_which_no_envelope_finishes_is_bounded(count: int, most: int) -> None:
    members = manifest(*(f"e{number:04d}" for number in range(count))).members
    number, charged = count_runs(members, "payload", {member.id for member in members})
    assert len(charged) == count
    assert number == most


@pytest.mark.rule("10.death.bounded")
@pytest.mark.parametrize(("parallel", "most"), [(1, 2), (8, 3)])
def test_10_a_death_among_good_envelopes_costs_few_runs_and_charges_nobody_else(parallel: int, most: int) -> None:
    members = manifest(*(f"e{number:04d}" for number in range(1000))).members
    bad = {f"e{number:04d}" for number in range(7, 1000, 20)}
    number, charged = count_runs(members, "payload", bad, parallel=parallel)
    assert sorted(charged) == sorted(bad)
    assert number <= most * len(bad) + 1


@pytest.mark.rule("10.death.at-work")
def test_10_suspects_run_one_at_a_time_and_with_no_others() -> None:
    decision = FailureDecision("again", suspects=(1, 2))
    back = run_failures.returned_members(manifest(*"abcd"), decision, (1, 2, 3))
    assert [(index, member.suspected_in) for index, member in back.items()] == [(1, 7), (2, 7), (3, 0)]
    assert [member.id for member in run_formation.select(back.values(), 10).members] == ["b", "c"]
    spec = Actor(kind="spark", timeout=60.0, spark=SparkJob(job="flights.clean", parallel=8))

    def parallel(*members: Member) -> int:
        return run_formation.form(
            members, namespace="flights", actor="clean", spec=spec, number=8, now=datetime(2026, 1, 1, tzinfo=UTC)
        ).parallel

    assert (parallel(back[1], back[2]), parallel(back[3])) == (1, 8)


@pytest.mark.rule("10.death.bounded")
def test_10_a_finished_envelope_ends_a_row_of_deaths() -> None:
    died = FailureDecision("again", suspects=(1,))
    assert run_failures.returned_members(manifest(*"abc"), died, (0, 1, 2))[2].deaths == 1
    once = replace(manifest(), members=tuple(replace(member, deaths=1) for member in manifest(*"abc").members))
    assert run_failures.returned_members(once, died, (0, 1, 2))[2].deaths == 2
    assert run_failures.returned_members(once, died, (1, 2))[2].deaths == 0
