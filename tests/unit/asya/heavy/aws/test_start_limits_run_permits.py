"""The permits of active job runs, shared by concurrent dispatchers."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asya.heavy.aws.start_limits import RunPermit, RunPermits
from tests.doubles.heavy import HeavyWorld, heavy_world

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def permits(world: HeavyWorld, most: int | None) -> RunPermits:
    return RunPermits(world.dynamodb, table="asya-flights-pending", most=most)


def active(_: str) -> bool:
    return True


def took(pool: RunPermits, run: str) -> bool:
    return pool.take(run, is_active=active, now=NOW) is not None


def taken(pool: RunPermits, run: str) -> RunPermit:
    permit = pool.take(run, is_active=active, now=NOW)
    assert permit is not None
    return permit


@pytest.mark.rule("10.busy.slots")
def test_a_run_keeps_its_permit_and_others_wait(world: HeavyWorld) -> None:
    two = permits(world, 2)
    assert [took(two, run) for run in ("a", "b", "c", "a")] == [True, True, False, True]
    assert two.take("c", is_active=lambda run: run != "b", now=NOW)
    assert [took(two, run) for run in ("a", "b", "c")] == [True, False, True]


def test_a_permit_is_given_back(world: HeavyWorld) -> None:
    two = permits(world, 2)
    first, second = taken(two, "a"), taken(two, "b")
    for permit in (first, first, RunPermit("missing", 1)):
        two.give_back(permit)
    assert [took(two, run) for run in ("c", "d")] == [True, False]
    for permit in (second, RunPermit("c", 1)):
        two.give_back(permit)
    assert [took(two, run) for run in ("d", "e", "f")] == [True, True, False]


@pytest.mark.rule("10.busy.slots")
def test_a_slow_dispatcher_gives_nothing_back_that_was_taken_again(world: HeavyWorld) -> None:
    """EMR Serverless has rejected its start; another dispatcher has started the same run in the meantime."""
    one = permits(world, 1)
    slow, again = taken(one, "a"), taken(one, "a")
    one.give_back(slow)
    assert not took(one, "b")
    one.give_back(again)
    assert took(one, "b")


def before_the_next_write(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let another dispatcher act between the read and the write of this one."""
    put, acts = world.dynamodb.put_item, iter([act])

    def late(**request: Any) -> Any:
        for each in acts:
            each()
        return put(**request)

    monkeypatch.setattr(world.dynamodb, "put_item", late)


def test_a_permit_that_another_one_took_meanwhile_stays_taken(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = permits(world, 2)
    mine = taken(two, "mine")
    before_the_next_write(world, monkeypatch, lambda: taken(two, "other"))
    two.give_back(mine)
    assert [took(two, run) for run in ("a", "b", "other")] == [True, False, True]


def test_a_lower_limit_takes_effect_as_runs_end(world: HeavyWorld) -> None:
    for run in "abc":
        assert permits(world, 3).take(run, is_active=active, now=NOW)
    assert not permits(world, 1).take("d", is_active=lambda run: run == "a", now=NOW)
    assert permits(world, 1).take("d", is_active=lambda _: False, now=NOW)


@pytest.mark.rule("10.busy.slots")
def test_two_dispatchers_do_not_take_the_same_permit(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    one = permits(world, 1)
    before_the_next_write(world, monkeypatch, lambda: taken(one, "other"))
    assert not one.take("mine", is_active=active, now=NOW)
    assert one.take("other", is_active=active, now=NOW)


def test_without_a_limit_there_is_no_item(world: HeavyWorld) -> None:
    assert permits(world, None).take("a", is_active=active, now=NOW)
    permits(world, None).give_back(RunPermit("a", 0))
    assert world.items("QUOTA") == []


@pytest.mark.rule("10.priority")
def test_10_a_free_permit_is_left_to_a_higher_priority_that_waits(world: HeavyWorld) -> None:
    two = permits(world, 2)
    for run in ("a", "b"):
        assert two.take(run, is_active=active, now=NOW)
    assert not two.take("low", is_active=active, now=NOW)
    assert not two.take("high", is_active=active, now=NOW, priority=5)
    assert not two.take("middle", is_active=active, now=NOW, priority=3)
    two.give_back(RunPermit("a", 1))

    assert not two.take("low", is_active=active, now=NOW)
    assert not two.take("middle", is_active=active, now=NOW, priority=3)
    assert two.take("high", is_active=active, now=NOW, priority=5)
    two.give_back(RunPermit("b", 1))
    assert not two.take("low", is_active=active, now=NOW)
    assert two.take("middle", is_active=active, now=NOW, priority=3)
    two.give_back(RunPermit("high", 1))
    assert two.take("low", is_active=active, now=NOW)


@pytest.mark.rule("10.priority")
def test_10_further_free_permits_are_for_all(world: HeavyWorld) -> None:
    two = permits(world, 2)
    for run in ("a", "b"):
        assert two.take(run, is_active=active, now=NOW)
    assert not two.take("high", is_active=active, now=NOW, priority=5)
    assert two.take("low", is_active=lambda _: False, now=NOW)
    assert not two.take("lower", is_active=active, now=NOW)


@pytest.mark.rule("10.priority")
def test_10_a_run_that_asks_no_more_keeps_no_permit_free(world: HeavyWorld) -> None:
    one = permits(world, 1)
    assert one.take("a", is_active=active, now=NOW)
    assert not one.take("high", is_active=active, now=NOW, priority=5)
    one.give_back(RunPermit("a", 1))

    assert not one.take("low", is_active=active, now=NOW + timedelta(seconds=59))
    assert one.take("low", is_active=active, now=NOW + timedelta(seconds=61))
