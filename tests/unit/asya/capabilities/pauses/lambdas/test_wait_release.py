"""protocol §11: the sweep of waits, with deaths before and after each side effect."""

import json
from datetime import timedelta
from typing import Any
from zlib import crc32

import pytest
from botocore.exceptions import ClientError

from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor
from asya.protocol.times import format_time
from asya.protocol.wait import Wait
from asya.tasks.aws.items import WAITING_SHARDS
from asya.testing.planned_faults import Death
from asya.testing.services.process import ProcessCrashed
from tests.doubles.envelopes import mesh, message
from tests.doubles.waiting import DAY, WaitingWorld, waiting_world

ARRIVING = message(route={"prev": [], "curr": "cool-down", "next": ["post"]})
HOP = ("env-1", ("cool-down",), "post")


def run(world: WaitingWorld, death: Death) -> list[Envelope]:
    """A wait from arrival to the next actor, in functions that die once; SQS delivers what is not acknowledged again."""
    world.death.at, world.death.is_after = death.at, death.is_after
    deliveries = [ARRIVING.decode()]
    for moment in range(5):
        deliveries = [body for body in deliveries if not is_done(world, body)] + world.take("cool-down")
        world.clock.moment += DAY
        try:
            world.sweep()
        except ProcessCrashed:
            world.sweep()
        assert moment >= 2 or world.sent("post") == []
    for body in [*deliveries, *world.take("cool-down")]:
        assert world.deliver("cool-down", body) == []
    return world.sent("post")


def is_done(world: WaitingWorld, body: str) -> bool:
    """Deliver a message; whether it was acknowledged."""
    try:
        return world.deliver("cool-down", body) == []
    except ProcessCrashed:
        return False


@pytest.fixture(scope="module")
def effects() -> list[str]:
    """The side effects of a run without a death."""
    with pytest.MonkeyPatch.context() as patch, waiting_world(patch) as world:
        assert len(run(world, Death())) == 1
        return list(world.death.effects)


@pytest.mark.rule("11.wait.sent", "11.wait.kept")
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_a_death_at_any_side_effect_loses_nothing(effects: list[str], is_after: bool) -> None:
    assert len(effects) >= 6
    for number, effect in enumerate(effects, 1):
        with pytest.MonkeyPatch.context() as patch, waiting_world(patch) as world:
            sent = run(world, Death(number, is_after))
            hops = {(each.id, each.route.prev, each.route.curr) for each in sent}
            assert hops == {HOP}, f"died {'after' if is_after else 'before'} {effect} {number}"
            assert len(sent) <= 2
            assert world.record().waiting_until is None


@pytest.mark.rule("11.wait.sent")
def test_two_sweeps_at_once_send_the_same_message(waits: WaitingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    waits.arrive("cool-down")
    waits.clock.moment += 3 * DAY
    load = waits.s3.get_object
    is_first = True

    def load_beside_another_sweep(**request: str) -> object:
        nonlocal is_first
        found = load(**request)
        if is_first and request["Key"].startswith("waiting/"):
            is_first = False
            waits.sweep()
        return found

    monkeypatch.setattr(waits.s3, "get_object", load_beside_another_sweep)
    waits.sweep()
    first, second = waits.take("cool-down")
    assert first == second
    for body in (first, second):
        assert waits.deliver("cool-down", body) == []
    assert {(sent.id, sent.route.position) for sent in waits.sent("post")} == {("env-1", 2)}
    assert waits.record().waiting_until is None


@pytest.mark.rule("11.wait.sent")
def test_a_slow_sweep_marks_no_later_wait_as_sent(waits: WaitingWorld) -> None:
    """Before the sweep marks the first wait in the record, the envelope is held by the second one of its route."""
    waits.arrive("cool-down", next_actor="cool-down")
    waits.clock.moment += 3 * DAY
    put = waits.s3.put_object

    def put_and_stand_still(**request: Any) -> Any:
        answer = put(**request)
        for _ in range(2):
            for body in waits.take("cool-down"):
                assert waits.deliver("cool-down", body) == []
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waits.s3, "put_object", put_and_stand_still)
        waits.sweep()
    assert waits.record().waiting_until == format_time(waits.clock.moment + 3 * DAY)


@pytest.mark.rule("11.wait.sent")
def test_a_sweep_without_time_leaves_the_rest_to_the_next_one(
    waits: WaitingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        waits.arrive("cool-down", id=f"env-{number}")
    waits.clock.moment += 3 * DAY
    monkeypatch.setattr("asya.capabilities.pauses.lambdas.sweep._CHUNK", 2)
    monkeypatch.setattr("asya.capabilities.pauses.lambdas.sweep.WAITS_SECONDS", -1.0)
    counts = []
    for _ in range(3):
        waits.sweep()
        counts.append(len(waits.sent("cool-down")))
    assert counts == [2, 4, 5]


@pytest.mark.rule("11.wait.sent")
def test_waits_that_cannot_be_sent_hold_up_no_other_shard_for_ever(
    waits: WaitingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep has time for one wait here, and the first shard has one that fails each time."""
    ids = [f"env-{number}" for number in range(30)]
    broken, whole = (next(each for each in ids if crc32(each.encode()) % WAITING_SHARDS == shard) for shard in (0, 5))
    for task_id in (broken, whole):
        waits.arrive("cool-down", id=task_id)
    load = waits.s3.get_object

    def refuse(**request: str) -> object:
        if f"/{broken}/" in request["Key"]:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, "GetObject")
        return load(**request)

    monkeypatch.setattr(waits.s3, "get_object", refuse)
    waits.clock.moment += 3 * DAY
    monkeypatch.setattr("asya.capabilities.pauses.lambdas.sweep._CHUNK", 1)
    monkeypatch.setattr("asya.capabilities.pauses.lambdas.sweep.WAITS_SECONDS", -1.0)
    for _ in range(WAITING_SHARDS):
        waits.sweep()
        waits.clock.moment += timedelta(minutes=1)
    assert [each.id for each in waits.sent("cool-down")] == [whole]


@pytest.mark.rule("11.wait.sent", "11.resume.pending")
def test_unfinished_releases_of_pauses_leave_time_for_waits(
    waits: WaitingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of paused tasks may be canceled at once. The sweep has time for one of their releases here."""
    for number in range(3):
        waits.arrive("timed", id=f"paused-{number}")
        waits.cancel(f"paused-{number}")
    waits.arrive("cool-down")
    waits.clock.moment += 3 * DAY
    monkeypatch.setattr("asya.capabilities.pauses.lambdas.sweep.RELEASES_SECONDS", -1.0)
    waits.sweep()
    assert (len(waits.sent("x-sink")), len(waits.sent("cool-down"))) == (1, 1)
    for _ in range(2):
        waits.sweep()
    assert {each.id for each in waits.sent("x-sink")} == {"paused-0", "paused-1", "paused-2"}


@pytest.mark.rule("11.wait.removed")
def test_an_envelope_whose_actor_was_removed_goes_to_x_sump(waits: WaitingWorld) -> None:
    waits.arrive("cool-down")
    waits.clock.moment += 3 * DAY
    waits.table = mesh()
    waits.sweep()
    (failed,) = waits.sent("x-sump")
    assert failed.status is not None
    assert failed.status.error is not None
    assert failed.status.reason == "RouteMismatch"
    assert "has no such actor any more" in failed.status.error.message
    assert waits.record().waiting_until is None


def test_a_deployment_during_the_wait_does_not_change_its_time(waits: WaitingWorld) -> None:
    waits.arrive("cool-down")
    waits.table = mesh({"cool-down": Actor(kind="wait", wait=Wait(seconds=9 * 86400.0))})
    waits.clock.moment += 3 * DAY
    waits.go_on("cool-down")
    assert len(waits.sent("post")) == 1


def test_an_envelope_that_has_expired_stops_no_sweep(waits: WaitingWorld) -> None:
    waits.arrive("cool-down")
    waits.clock.moment += 3 * DAY
    waits.s3.objects.clear()
    waits.sweep()
    assert (waits.sent("cool-down"), waits.record().waiting_until) == ([], None)


@pytest.mark.rule("15.WaitsLate", "15.nothing")
def test_the_sweep_measures_how_late_it_is(waits: WaitingWorld, capsys: pytest.CaptureFixture[str]) -> None:
    waits.arrive("cool-down")
    waits.clock.moment += 4 * DAY
    capsys.readouterr()
    waits.sweep()
    waits.sweep()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"WaitsLate"' in line]
    assert [line["WaitsLate"] for line in lines] == [86_400.0]


@pytest.mark.rule("11.wait.removed")
def test_an_envelope_that_is_too_large_after_its_wait_goes_to_x_sump(waits: WaitingWorld) -> None:
    waits.arrive("cool-down", headers={"blob": "x" * 1_032_100})
    waits.clock.moment += 3 * DAY
    waits.sweep()
    (failed,) = waits.sent("x-sump")
    assert failed.status is not None
    assert failed.status.error is not None
    assert failed.status.error.type == "EnvelopeTooLarge"
    assert (waits.sent("cool-down"), waits.record().waiting_until) == ([], None)
