"""The slots of active job runs, shared by concurrent dispatchers."""

from collections.abc import Iterator
from typing import Any

import pytest

from asya.spark.aws.run_slots import RunSlots
from tests.doubles.heavy import HeavyWorld, heavy_world


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
    assert [two.take(run, is_active=active) for run in ("a", "b", "c", "a")] == [True, True, False, True]
    assert two.take("c", is_active=lambda run: run != "b")
    assert [two.take(run, is_active=active) for run in ("a", "b", "c")] == [True, False, True]


def test_a_slot_is_given_back(world: HeavyWorld) -> None:
    two = slots(world, 2)
    for run in ("a", "b", "missing"):
        two.take(run, is_active=active)
    for run in ("a", "a", "missing"):
        two.give_back(run)
    assert [two.take(run, is_active=active) for run in ("c", "d")] == [True, False]
    for run in ("b", "c"):
        two.give_back(run)
    assert [two.take(run, is_active=active) for run in ("d", "e", "f")] == [True, True, False]


def test_a_slot_that_another_one_took_meanwhile_stays_taken(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    two, put = slots(world, 2), RunSlots._put
    assert two.take("mine", is_active=active)
    others = iter(["other"])

    def late(self: RunSlots, holders: list[str], previous: Any) -> bool:
        for other in others:
            assert put(self, ["mine", other], previous)
        return put(self, holders, previous)

    monkeypatch.setattr(RunSlots, "_put", late)
    two.give_back("mine")
    assert [two.take(run, is_active=active) for run in ("other", "a", "b")] == [True, True, False]


def test_a_lower_limit_takes_effect_as_runs_end(world: HeavyWorld) -> None:
    for run in "abc":
        assert slots(world, 3).take(run, is_active=active)
    assert not slots(world, 1).take("d", is_active=lambda run: run == "a")
    assert slots(world, 1).take("d", is_active=lambda _: False)


@pytest.mark.rule("10.busy.slots")
def test_two_dispatchers_do_not_take_the_same_slot(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    one, put = slots(world, 1), RunSlots._put
    others = iter(["other"])

    def late(self: RunSlots, holders: list[str], previous: Any) -> bool:
        for other in others:
            assert put(self, [other], previous)
        return put(self, holders, previous)

    monkeypatch.setattr(RunSlots, "_put", late)
    assert not one.take("mine", is_active=active)
    assert one.take("other", is_active=active)


def test_without_a_limit_there_is_no_item(world: HeavyWorld) -> None:
    assert slots(world, None).take("a", is_active=active)
    slots(world, None).give_back("a")
    assert world.items("QUOTA") == []
