"""protocol §11.wait.stands: waits whose deadline stands still are pauses with a timer."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from asya.protocol.times import format_time
from asya.testing.planned_faults import Death
from asya.testing.services.process import ProcessCrashed
from tests.doubles.envelopes import status
from tests.doubles.waiting import BEGAN, DAY, WaitingWorld, waiting_world

DEADLINE = {"status": status(deadline_at=format_time(BEGAN + DAY))}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingWorld]:
    with waiting_world(monkeypatch) as world:
        yield world


@pytest.mark.rule("11.wait.stands")
def test_the_task_is_paused_until_its_timer_has_run_down(waits: WaitingWorld) -> None:
    waits.arrive("timed", **DEADLINE)
    due = format_time(BEGAN + 3 * DAY)
    record = waits.record()
    assert (record.status, record.waiting_until) == ("paused", due)
    assert record.pause is not None
    assert (record.pause.prompt, record.pause.fields) == (f"Goes on at {due}, or with a resume", ())
    waits.clock.moment += 2.9 * DAY
    waits.sweep()
    assert (waits.sent("x-resume"), waits.record().status) == ([], "paused")


@pytest.mark.rule("11.wait.stands")
def test_it_goes_on_with_the_time_that_was_left(waits: WaitingWorld) -> None:
    body = waits.arrive("timed", **DEADLINE)
    waits.clock.moment += 3 * DAY
    waits.go_on("x-resume")
    (sent,) = waits.sent("post")
    assert sent.status is not None
    assert sent.status.deadline_at == format_time(BEGAN + 4 * DAY)
    assert sent.route.prev == ("prep", "timed", "x-resume")
    record = waits.record()
    assert (record.status, record.deadline_at, record.handover) == ("running", format_time(BEGAN + 4 * DAY), None)
    assert waits.deliver("timed", body) == []
    waits.go_on("x-resume")
    assert len(waits.sent("post")) == 1


@pytest.mark.rule("11.wait.stands")
def test_a_canceled_task_ends(waits: WaitingWorld) -> None:
    waits.arrive("timed")
    waits.cancel()
    waits.clock.moment += DAY
    waits.sweep()
    (sent,) = waits.sent("x-sink")
    assert sent.status is not None
    assert sent.status.phase == "canceled"


@pytest.mark.rule("11.wait.stands")
@pytest.mark.parametrize("is_after", [False, True])
def test_a_death_of_the_sweep_is_repaired_by_the_next_ones(is_after: bool) -> None:
    for number in range(1, 3):
        with pytest.MonkeyPatch.context() as patch, waiting_world(patch) as world:
            world.arrive("timed")
            world.clock.moment += 3 * DAY
            world.death = died = Death(number, is_after, ["SendMessage"])
            for _ in range(3):
                try:
                    world.sweep()
                except ProcessCrashed:
                    assert len(died.effects) == number
                world.clock.moment += DAY / 1440
            assert {sent.id for sent in world.sent("x-resume")} == {"env-1"}
            assert world.record().handover is None


def test_a_pause_whose_envelope_is_gone_stops_no_sweep(waits: WaitingWorld) -> None:
    waits.arrive("timed")
    waits.s3.objects.clear()
    waits.clock.moment += 3 * DAY
    waits.sweep()
    assert (waits.sent("x-resume"), waits.record().status) == ([], "paused")


def test_one_that_is_due_already_holds_nothing(waits: WaitingWorld) -> None:
    waits.arrive("embargo-timed", payload={"publish_at": 0})
    (sent,) = waits.sent("post")
    assert sent.route.prev == ("prep", "embargo-timed")
    assert waits.s3.keys("paused/") == []


@pytest.mark.rule("11.wait.passed-on")
def test_an_envelope_that_was_held_before_a_deployment_does_not_wait_again(waits: WaitingWorld) -> None:
    waits.arrive("cool-down")
    actors = waits.table.actors
    waits.table = replace(waits.table, actors={**actors, "cool-down": actors["timed"]})
    waits.clock.moment += 3 * DAY
    waits.go_on("cool-down")
    assert [sent.id for sent in waits.sent("post")] == ["env-1"]
    assert waits.s3.keys("paused/") == []


def test_a_slice_cannot_wait_with_a_deadline_that_stands(waits: WaitingWorld) -> None:
    place = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2}
    waits.arrive("timed", headers={"x-asya-fan-in": place | {"aggregation_key": "/results"}})
    (failed,) = waits.sent("x-sink")
    assert failed.status is not None
    assert failed.status.phase == "failed"
