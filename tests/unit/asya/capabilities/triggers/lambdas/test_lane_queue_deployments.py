"""Lanes while the settings of their trigger change: whatever a lane holds then, it comes to rest."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from asya.capabilities.cancels.lambdas.task_cancels import TaskCancels
from asya.capabilities.triggers.lanes import lane_of
from asya.protocol.triggers import Overlap, Trigger, TriggerBatch
from asya.tasks.aws.task_store import TaskStoreError
from asya.testing.planned_faults import Death
from tests.doubles.lane_world import LaneWorld, Waiting

OVERLAPS: tuple[Overlap, ...] = ("allow", "skip", "queue", "cancel-previous")
WINDOWS: tuple[dict[str, Any], ...] = ({}, {"debounce": 20.0}, {"batch": TriggerBatch(size=3, window=40.0)})
SETTINGS = [
    Trigger(route=("infer",), overlap=overlap, by=by, **window)
    for overlap, by, window in product(OVERLAPS, (None, "/lane"), WINDOWS)
]
STORIES = 4 if os.environ.get("ASYA_FULL_SIZE") else 1
"""Histories of each pair of settings."""


@pytest.fixture(autouse=True)
def permissions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let x-triggers cancel tasks only in a mesh with a trigger that cancels, as its role may."""
    cancel = TaskCancels.cancel

    def allowed(cancels: TaskCancels, *arguments: Any) -> Any:
        if Current.world.trigger.overlap != "cancel-previous":
            raise TaskStoreError("cannot cancel: AccessDeniedException")
        return cancel(cancels, *arguments)

    monkeypatch.setattr(TaskCancels, "cancel", allowed)


class Current:
    """The world of the present story."""

    world: LaneWorld


@dataclass
class Story:
    """A history of one lane or two, with a deployment in the middle and a process that dies at any write."""

    world: LaneWorld
    random: Random
    count: int = 0

    def occur(self) -> None:
        """Let something occur, perhaps twice."""
        self.count += 1
        lane = self.random.choice(("a", "b"))
        self.world.occur(self.count, times=self.random.choice((1, 1, 2)), lane=lane)

    def go_on(self, most: int) -> None:
        """Let things occur, time pass, tasks end and a process die."""
        for _ in range(self.random.randint(1, most)):
            for _ in range(self.random.randint(0, 2)):
                self.occur()
            if self.random.random() < 0.5:
                self.world.death = Death(at=self.random.randint(1, 8), is_after=self.random.random() < 0.5)
            self.world.run(self.random.choice((0, 0, 5, 45)), sweeps=self.random.random() < 0.5)
            running = sorted(set(self.world.started) - self.world.ended)
            if running and self.random.random() < 0.5:
                self.world.end(self.random.choice(running))
        self.world.death = Death()

    def interrupted(self) -> None:
        """Leave something noted: a process dies, and its message has not come again."""
        self.occur()
        self.world.death = Death(at=self.random.randint(1, 8), is_after=self.random.random() < 0.5)
        arrived = [each for each in self.world.waiting if each.at <= self.world.clock.time]
        for message in arrived:
            self.world.deliver(message)
        self.world.death = Death()

    def rest(self) -> None:
        """Let all tasks end, and the sweep find the rest."""
        for _ in range(20):
            self.world.run(120)
            self.world.end_all(120)
            if not self.open_lanes():
                return

    def open_lanes(self) -> list[Any]:
        """The lanes that have something to do or to wait for."""
        items = self.world.tables.tables["asya-shop-tasks"].items
        states = [msgspec.json.decode(item["state"]["S"]) for key, item in items.items() if key[1] == "trigger#lane"]
        return [state for state in states if state]

    def check(self, *settings: Trigger) -> None:
        """Check that each occurrence has its decision, and exactly one task if it was not skipped or replaced."""
        replaces = any(each.debounce is not None for each in settings)
        items = self.world.tables.tables["asya-shop-tasks"].items
        outcomes = {key[0]: item["outcome"]["S"] for key, item in items.items() if key[1] == "trigger#decided"}
        starts = [numbers_of(payload) for payload in self.world.started.values()]
        numbers = [number for start in starts for number in start]
        assert sorted(numbers) == sorted(set(numbers))
        for number in range(1, self.count + 1):
            (outcome,) = {outcomes[f"TRIGGER#{task_id}"] for task_id in self.ids(number)}
            if outcome == "gathered" and replaces:
                continue  # debounce starts one task for several of them
            assert (number in numbers) is (outcome != "skipped")
        assert (self.open_lanes(), self.world.dead, self.world.waiting) == ([], [], [])

    def ids(self, number: int) -> Iterator[str]:
        """The id of the task of an occurrence."""
        scratch = LaneWorld(self.world.trigger)
        yield scratch.occur(number).task_id


def numbers_of(payload: Any) -> list[int]:
    """The numbers of the occurrences of a task."""
    return [item["n"] for item in payload["items"]] if "items" in payload else [payload["n"]]


def story(trigger: Trigger, seed: int) -> Story:
    """Begin a history."""
    Current.world = LaneWorld(trigger)
    return Story(Current.world, Random(seed))


@pytest.mark.rule("16.lane.changed")
@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.slow
def test_16_a_lane_comes_to_rest_after_each_change_of_its_settings(number: int) -> None:
    """No task is canceled that the new settings do not cancel, and no occurrence is lost."""
    before = SETTINGS[number]
    for place, after in enumerate(SETTINGS):
        for seed in range(STORIES):
            told = story(before, 1000 * place + seed)
            told.go_on(3)
            told.interrupted()
            told.world.trigger = after
            told.go_on(3)
            told.rest()
            told.check(before, after)


@pytest.mark.rule("16.lane.changed", "16.lane.off")
@pytest.mark.parametrize("change", ["off", "removed"])
def test_16_a_lane_comes_to_rest_when_its_trigger_is_back(change: str) -> None:
    """While it is off or gone, nothing starts and no message goes round."""
    for number, before in enumerate(SETTINGS):
        told = story(before, number)
        told.go_on(3)
        told.interrupted()
        world, started = told.world, dict(told.world.started)
        held = [each for each in world.waiting if not isinstance(each.content, bytes)]
        world.waiting = [each for each in world.waiting if each not in held]
        world.trigger = replace(before, enabled=False) if change == "off" else before
        world.name = "orders" if change == "off" else "renamed"
        for task_id in set(world.started) - world.ended:
            world.end(task_id)
        world.run(600)
        assert (world.started, world.waiting, world.dead) == (started, [], [])
        world.trigger, world.name = before, "orders"
        world.waiting = [Waiting(each.content, world.clock.time, each.sent_at) for each in held]
        told.rest()
        told.check(before)


@pytest.mark.rule("16.lane.changed", "16.overlap.queue", "16.overlap.skip")
@pytest.mark.parametrize("overlap", ["queue", "skip", "allow"])
@pytest.mark.parametrize("count", [1, 3])
def test_16_a_noted_cancellation_of_a_trigger_that_cancels_no_more(overlap: Overlap, count: int) -> None:
    """The task runs on. With `queue` and `skip` those that were to follow start one by one, each after the last."""
    told = story(Trigger(route=("infer",), overlap="cancel-previous"), 0)
    world = told.world
    key = lane_of(world.occur(0), world.trigger)
    world.run()
    for number in range(1, count + 1):
        world.occur(number)
        world.death = Death(at=1, is_after=True)  # after the decision
        world.deliver(world.waiting[-1])
    world.trigger = replace(world.trigger, overlap=overlap)
    world.run(600)
    assert world.numbers() == ([0] if overlap != "allow" else list(range(count + 1)))
    with world.active():
        assert world.lanes().store.read(key).lane.is_empty is (overlap == "allow")
    for number in range(count + 1):
        world.end(list(world.started)[number], "succeeded")
        world.run()
        assert world.overlaps == [] or overlap == "allow"
    told.rest()
    assert (world.numbers(), told.open_lanes(), world.dead) == (list(range(count + 1)), [], [])
    assert all(world.status(task_id) == "succeeded" for task_id in world.started)


@pytest.mark.rule("16.lane.changed")
def test_16_waiting_starts_do_not_wait_for_the_end_of_a_task_without_overlap() -> None:
    """The sweep finds the lane though its task runs on for months, and nothing else occurs."""
    told = story(Trigger(route=("infer",), overlap="queue"), 0)
    for number in range(3):
        told.world.occur(number)
    told.world.run()
    told.world.trigger = Trigger(route=("infer",))
    told.world.clock.time += timedelta(seconds=60)
    told.world.run(120)
    assert (told.world.numbers(), told.open_lanes()) == ([0, 1, 2], [])
