"""The window in which envelopes wait for a fuller batch (`protocol §10.window`)."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from asya.protocol.mesh_table import Batch
from tests.doubles.dispatching import enqueue_ids, waiting_requests
from tests.doubles.heavy import TABLE, HeavyWorld, heavy_world

WAITS = replace(
    TABLE, actors={**TABLE.actors, "clean": replace(TABLE.actors["clean"], batch=Batch(size=3, window=600.0))}
)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch, WAITS) as heavy:
        yield heavy


def sizes(world: HeavyWorld) -> list[int]:
    """The sizes of the runs."""
    return [len(world.manifest(number).members) for number in range(1, len(world.emr.runs) + 1)]


@pytest.mark.rule("10.window")
def test_a_full_batch_ends_the_window(world: HeavyWorld) -> None:
    enqueue_ids(world, "a")
    enqueue_ids(world, "b")
    assert waiting_requests(world) == {"due": "0", "delayed": "1"}

    enqueue_ids(world, "c")

    assert waiting_requests(world) == {"due": "1", "delayed": "1"}
    world.dispatch()
    assert sizes(world) == [3]


@pytest.mark.rule("10.window")
def test_a_batch_that_comes_together_waits_for_nothing(world: HeavyWorld) -> None:
    enqueue_ids(world, "a", "b", "c", "d")

    assert waiting_requests(world) == {"due": "1", "delayed": "0"}
    world.dispatch()
    assert sizes(world) == [3]


@pytest.mark.rule("10.window")
def test_what_a_full_batch_leaves_waits_for_its_own_window_and_counts(world: HeavyWorld) -> None:
    enqueue_ids(world, "a", "b", "c", "d")
    while world.dispatch():
        pass
    assert waiting_requests(world) == {"due": "0", "delayed": "1"}
    enqueue_ids(world, "e")
    assert world.dispatch() == 0

    enqueue_ids(world, "f")  # d, e and f are a full batch

    assert world.dispatch() == 1
    assert sizes(world) == [3, 3]


@pytest.mark.rule("10.window")
def test_an_early_request_forms_no_run_of_an_open_window(world: HeavyWorld) -> None:
    enqueue_ids(world, "a")
    world.put("x-dispatch", '{"actor": "clean"}')

    assert world.dispatch() == 1

    assert sizes(world) == []
    assert waiting_requests(world) == {"due": "0", "delayed": "1"}


def test_a_redelivery_does_not_count_twice(world: HeavyWorld) -> None:
    world.send("a")
    event = world.enqueue()
    for record in event["Records"]:
        world.put("clean", record["body"])
        world.put("clean", record["body"])

    world.enqueue()

    assert waiting_requests(world) == {"due": "0", "delayed": "1"}
