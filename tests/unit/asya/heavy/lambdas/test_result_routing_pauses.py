"""protocol §5.4: a late copy of a message whose task has paused since, at a heavy actor."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles.heavy import HeavyWorld, done_result, failed_result, heavy_world

LATE = {"status": {"phase": "pending", "deadline_at": "2020-01-01T00:00:00Z"}}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def start_late_copy(world: HeavyWorld, **more: Any) -> None:
    """Starts a run of a late copy whose deadline has passed."""
    world.gateway.pauses = {"a": 3}
    world.send("a", {"n": 1}, **(LATE | more))
    world.enqueue()
    world.dispatch()


@pytest.mark.rule("5.4.late-copies")
def test_it_runs_in_spite_of_its_deadline_and_sends_its_children_only(world: HeavyWorld) -> None:
    start_late_copy(world)
    assert [member.id for member in world.manifest(1).members] == ["a"]
    world.write_results(1, [done_result(0, 1, 2, 3)])
    world.set_state("run1", "SUCCESS")
    world.complete()
    frames = world.bodies("publish")
    assert sorted(frame["payload"] for frame in frames) == [2, 3]
    assert {frame["parent_id"] for frame in frames} == {"a"}
    assert world.bodies("x-sink") == []
    assert [getattr(event, "status", "") for event in world.gateway.events if event.id == "a"] in ([], ["processing"])


@pytest.mark.rule("5.4.late-copies")
@pytest.mark.parametrize("frames", [(), (1,)])
def test_without_children_nothing_leaves(world: HeavyWorld, frames: tuple[int, ...]) -> None:
    start_late_copy(world)
    world.write_results(1, [done_result(0, *frames)])
    world.set_state("run1", "SUCCESS")
    world.complete()
    assert (world.bodies("publish"), world.bodies("x-sink"), world.bodies("x-sump")) == ([], [], [])


@pytest.mark.rule("5.4.late-copies")
@pytest.mark.parametrize("frames", [(), (1,)])
def test_its_failure_is_that_of_a_child(world: HeavyWorld, frames: tuple[int, ...]) -> None:
    start_late_copy(world)
    world.write_results(1, [failed_result(0, *frames)])
    world.set_state("run1", "SUCCESS")
    world.complete()
    (failed,) = world.bodies("x-sink")
    assert (failed["parent_id"], failed["id"] != "a") == ("a", True)


@pytest.mark.rule("5.4.late-copies")
def test_canceled_it_is_left_out_of_the_run(world: HeavyWorld) -> None:
    world.send("a", {"n": 1})
    world.send("b", {"n": 1})
    world.enqueue()
    world.gateway.pauses, world.gateway.canceled = {"a": 3}, {"a"}
    world.dispatch()
    assert [member.id for member in world.manifest(1).members] == ["b"]
    assert (world.bodies("x-sink"), world.items("PENDING#")) == ([], [])


SLICE: dict[str, Any] = {
    "x-asya-fan-in": {
        "actor": "x-fan-in",
        "set_id": "s",
        "slice_index": 1,
        "slice_count": 3,
        "aggregation_key": "/results",
    }
}


@pytest.mark.rule("5.4.late-copies")
@pytest.mark.parametrize(
    ("result", "headers", "error"),
    [
        ([done_result(0, 1)[0], 5], {}, "SparkJobFailed"),
        (done_result(0, 1, next=["nobody"]), {}, "RouteMismatch"),
        (done_result(0, 1, 2), SLICE, "processing_error"),
        (failed_result(0, 1), SLICE, "ValueError"),
    ],
    ids=["unreadable frame 0", "unknown actor", "second frame of a slice", "frames of a failed slice"],
)
def test_a_failure_before_frame_0_is_that_of_a_child_too(
    world: HeavyWorld, result: list[Any], headers: dict[str, Any], error: str
) -> None:
    start_late_copy(world, headers=headers)
    world.write_results(1, [result])
    world.set_state("run1", "SUCCESS")
    world.complete()
    (failed,) = world.bodies("x-sink") + world.bodies("x-sump")
    assert (failed["parent_id"], failed["status"]["error"]["type"]) == ("a", error)
    assert world.bodies("publish") == []
