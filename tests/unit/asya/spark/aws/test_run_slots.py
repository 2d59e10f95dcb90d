"""The slots of active job runs, shared by concurrent dispatchers."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asya.spark.aws.run_slots import RunSlots
from tests.doubles.heavy import HeavyWorld, heavy_world

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def slots(world: HeavyWorld, most: int | None) -> RunSlots:
    return RunSlots(world.dynamodb, table="asya-flights-pending", most=most)


def active(_: str) -> bool:
    return True


@pytest.mark.rule("10.busy.slots")
def test_a_run_keeps_its_slot_and_others_wait(world: HeavyWorld) -> None:
    two = slots(world, 2)
    assert [two.take(run, is_active=active, now=NOW) for run in ("a", "b", "c", "a")] == [True, True, False, True]
    assert two.take("c", is_active=lambda run: run != "b", now=NOW)
    assert [two.take(run, is_active=active, now=NOW) for run in ("a", "b", "c")] == [True, False, True]


def test_a_slot_is_given_back(world: HeavyWorld) -> None:
    two = slots(world, 2)
    for run in ("a", "b", "missing"):
        two.take(run, is_active=active, now=NOW)
    for run in ("a", "a", "missing"):
        two.give_back(run)
    assert [two.take(run, is_active=active, now=NOW) for run in ("c", "d")] == [True, False]
    for run in ("b", "c"):
        two.give_back(run)
    assert [two.take(run, is_active=active, now=NOW) for run in ("d", "e", "f")] == [True, True, False]


def test_a_slot_that_another_one_took_meanwhile_stays_taken(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    two, put = slots(world, 2), RunSlots._put
    assert two.take("mine", is_active=active, now=NOW)
    others = iter(["other"])

    def late(self: RunSlots, holders: list[str], waiting: Any, previous: Any) -> bool:
        for other in others:
            assert put(self, ["mine", other], waiting, previous)
        return put(self, holders, waiting, previous)

    monkeypatch.setattr(RunSlots, "_put", late)
    two.give_back("mine")
    assert [two.take(run, is_active=active, now=NOW) for run in ("other", "a", "b")] == [True, True, False]


def test_a_lower_limit_takes_effect_as_runs_end(world: HeavyWorld) -> None:
    for run in "abc":
        assert slots(world, 3).take(run, is_active=active, now=NOW)
    assert not slots(world, 1).take("d", is_active=lambda run: run == "a", now=NOW)
    assert slots(world, 1).take("d", is_active=lambda _: False, now=NOW)


@pytest.mark.rule("10.busy.slots")
def test_two_dispatchers_do_not_take_the_same_slot(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    one, put = slots(world, 1), RunSlots._put
    others = iter(["other"])

    def late(self: RunSlots, holders: list[str], waiting: Any, previous: Any) -> bool:
        for other in others:
            assert put(self, [other], waiting, previous)
        return put(self, holders, waiting, previous)

    monkeypatch.setattr(RunSlots, "_put", late)
    assert not one.take("mine", is_active=active, now=NOW)
    assert one.take("other", is_active=active, now=NOW)


def test_without_a_limit_there_is_no_item(world: HeavyWorld) -> None:
    assert slots(world, None).take("a", is_active=active, now=NOW)
    slots(world, None).give_back("a")
    assert world.items("QUOTA") == []


@pytest.mark.rule("10.priority")
def test_10_a_free_slot_is_left_to_a_higher_priority_that_waits(world: HeavyWorld) -> None:
    two = slots(world, 2)
    for run in ("a", "b"):
        assert two.take(run, is_active=active, now=NOW)
    assert not two.take("low", is_active=active, now=NOW)
    assert not two.take("high", is_active=active, now=NOW, priority=5)
    assert not two.take("middle", is_active=active, now=NOW, priority=3)
    two.give_back("a")

    assert not two.take("low", is_active=active, now=NOW)
    assert not two.take("middle", is_active=active, now=NOW, priority=3)
    assert two.take("high", is_active=active, now=NOW, priority=5)
    two.give_back("b")
    assert not two.take("low", is_active=active, now=NOW)
    assert two.take("middle", is_active=active, now=NOW, priority=3)
    two.give_back("high")
    assert two.take("low", is_active=active, now=NOW)


@pytest.mark.rule("10.priority")
def test_10_further_free_slots_are_for_all(world: HeavyWorld) -> None:
    two = slots(world, 2)
    for run in ("a", "b"):
        assert two.take(run, is_active=active, now=NOW)
    assert not two.take("high", is_active=active, now=NOW, priority=5)
    assert two.take("low", is_active=lambda _: False, now=NOW)
    assert not two.take("lower", is_active=active, now=NOW)


@pytest.mark.rule("10.priority")
def test_10_a_run_that_asks_no_more_keeps_no_slot_free(world: HeavyWorld) -> None:
    one = slots(world, 1)
    assert one.take("a", is_active=active, now=NOW)
    assert not one.take("high", is_active=active, now=NOW, priority=5)
    one.give_back("a")

    assert not one.take("low", is_active=active, now=NOW + timedelta(seconds=59))
    assert one.take("low", is_active=active, now=NOW + timedelta(seconds=61))
