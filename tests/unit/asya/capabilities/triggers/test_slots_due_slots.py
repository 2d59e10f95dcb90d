"""Which slots are due: late ones, missed ones, paused, switched off and changed schedules."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from asya.capabilities.triggers.slots import MOST_SLOTS, ScheduleState, decide, schedule_digest
from asya.protocol.triggers import Schedule, Trigger

HOURLY = Schedule(cron="0 * * * *", catch_up=6 * 3600.0)
TRIGGER = Trigger(route=("greet",), cron=HOURLY.cron, catch_up=HOURLY.catch_up)
OFF = replace(TRIGGER, enabled=False)


def at(text: str) -> datetime:
    """A time of 25 November 2026."""
    return datetime.fromisoformat(f"2026-11-25T{text}:00+00:00")


def state(decided: str, schedule: Schedule = HOURLY, **others: bool) -> ScheduleState:
    """A state whose last slot was decided at a time."""
    return ScheduleState(decided=at(decided), schedule=schedule_digest(schedule), **others)


@pytest.mark.rule("16.due", "16.due.first")
def test_16_a_schedule_begins_with_its_first_sweep() -> None:
    """No slot before the first deployment is due, whatever catch_up says."""
    decision = decide(TRIGGER, HOURLY, None, at("12:30"))
    assert (decision.due, decision.missed) == ((), 0)
    assert decision.state == state("12:30")
    assert decide(TRIGGER, HOURLY, decision.state, at("13:00")).due == (at("13:00"),)


@pytest.mark.rule("16.due")
def test_16_each_slot_is_due_once() -> None:
    """Nothing changes between two slots, so nothing is written."""
    seen = state("12:00")
    assert decide(TRIGGER, HOURLY, seen, at("12:59")).state is seen
    decision = decide(TRIGGER, HOURLY, seen, at("13:00"))
    assert (decision.due, decision.state) == ((at("13:00"),), state("13:00"))
    assert decide(TRIGGER, HOURLY, decision.state, at("13:01")).due == ()


@pytest.mark.rule("16.due.catch-up")
def test_16_catch_up_may_be_longer_than_all_time() -> None:
    """The longest duration of a mesh file is 999,999,999 days. The sweep would end with an error, and start no other slot."""
    ever = replace(HOURLY, catch_up=999_999_999 * 86400.0)
    assert decide(TRIGGER, ever, state("10:00", ever), at("12:00")).due == (at("11:00"), at("12:00"))
    assert decide(TRIGGER, ever, state("12:00", ever), at("11:59")).due == ()


@pytest.mark.rule("16.due.catch-up")
def test_16_late_slots_are_due_within_catch_up_oldest_first() -> None:
    """Older ones are missed, and counted once. A slot as old as catch_up is due."""
    decision = decide(TRIGGER, HOURLY, state("02:00"), at("12:00"))
    assert decision.due == tuple(at(f"{hour:02d}:00") for hour in range(6, 13))
    assert (decision.missed, decision.missed_between) == (3, (at("03:00"), at("05:00")))
    assert decide(TRIGGER, HOURLY, decision.state, at("12:01")) == type(decision)((), 0, decision.state)


@pytest.mark.rule("16.due.catch-up")
def test_16_missed_slots_without_a_due_one_count_once() -> None:
    """The state moves on, or each sweep would count them again."""
    daily = Schedule(cron="0 2 * * *", catch_up=600.0)
    decision = decide(TRIGGER, daily, state("01:00", daily), at("12:00"))
    assert (decision.due, decision.missed, decision.missed_between) == ((), 1, (at("02:00"), at("02:00")))
    assert decide(TRIGGER, daily, decision.state, at("12:01")).missed == 0


@pytest.mark.rule("16.due.paused")
def test_16_slots_while_paused_are_neither_due_nor_missed() -> None:
    """A resumed trigger begins at its resume, which sets `decided`."""
    assert decide(TRIGGER, HOURLY, state("02:00", paused=True), at("12:00")) == type(
        decide(TRIGGER, HOURLY, None, at("12:00"))
    )((), 0, state("02:00", paused=True))
    assert decide(TRIGGER, HOURLY, state("12:00"), at("12:30")).missed == 0


@pytest.mark.rule("16.due.off")
def test_16_slots_while_off_are_neither_due_nor_missed() -> None:
    """The first sweep notes that the trigger is off, and the first one after it is on again begins anew."""
    off = decide(OFF, HOURLY, state("02:00"), at("12:00"))
    assert (off.due, off.missed, off.state.off) == ((), 0, True)
    assert decide(OFF, HOURLY, off.state, at("13:00")).state is off.state
    on = decide(TRIGGER, HOURLY, off.state, at("14:30"))
    assert (on.due, on.missed, on.state) == ((), 0, state("14:30"))


@pytest.mark.rule("16.due.off")
def test_16_a_trigger_that_begins_off_stays_off() -> None:
    """A stage without triggers starts nothing when they are turned on later, but from then on."""
    off = decide(OFF, HOURLY, None, at("02:00")).state
    assert off.off
    assert decide(TRIGGER, HOURLY, off, at("12:30")).due == ()


@pytest.mark.rule("16.due.changed")
@pytest.mark.parametrize("changed", [Schedule(cron="*/5 * * * *"), Schedule(cron="0 * * * *", timezone="Asia/Kolkata")])
def test_16_a_changed_schedule_begins_now(changed: Schedule) -> None:
    """Slots that the new expression would have had earlier are not started. A pause stays."""
    decision = decide(TRIGGER, changed, state("02:00"), at("12:02"))
    assert (decision.due, decision.missed, decision.state) == ((), 0, state("12:02", changed))
    assert decide(TRIGGER, changed, state("02:00", paused=True), at("12:02")).state.paused


@pytest.mark.rule("16.due.many")
def test_16_one_sweep_sends_a_bounded_number_of_slots() -> None:
    """The next sweep goes on, until all are sent."""
    minutely = Schedule(cron="* * * * *", catch_up=86400.0)
    seen, now, slots = state("00:00", minutely), at("12:00"), []
    while decision := decide(TRIGGER, minutely, seen, now):
        if not decision.due:
            break
        assert len(decision.due) <= MOST_SLOTS
        slots += decision.due
        seen = decision.state
    assert slots == [at("00:00") + timedelta(minutes=minute) for minute in range(1, 721)]
    assert seen.decided.tzinfo is UTC
