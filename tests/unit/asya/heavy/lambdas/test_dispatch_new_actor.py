"""The functions of a new heavy actor are deployed before the dispatcher, which keeps their requests meanwhile."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from asya.heavy.lambdas.dispatch import LAST_RECEIVE, Dispatcher
from tests.doubles.heavy import HeavyWorld, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


@pytest.fixture
def request_event(world: HeavyWorld) -> dict[str, Any]:
    """The request of an actor's first envelope."""
    world.send("a")
    world.enqueue()
    return world.receive("x-dispatch")


def received(event: dict[str, Any], count: int) -> dict[str, Any]:
    """The same event in a later delivery."""
    (record,) = event["Records"]
    return {"Records": [{**record, "attributes": {**record["attributes"], "ApproximateReceiveCount": str(count)}}]}


def old_dispatcher(world: HeavyWorld) -> Dispatcher:
    """The dispatcher of a version without the actor."""
    table = world.table
    world.table = replace(table, actors={name: actor for name, actor in table.actors.items() if name != "clean"})
    services = world.services_of("x-dispatch")
    world.table = table
    return Dispatcher(services)


def test_the_request_of_a_new_actor_waits_for_the_dispatcher(world: HeavyWorld, request_event: dict[str, Any]) -> None:
    (record,) = request_event["Records"]
    kept = {"batchItemFailures": [{"itemIdentifier": record["messageId"]}]}
    assert old_dispatcher(world).process(request_event) == kept

    assert Dispatcher(world.services).process(received(request_event, 2)) == {"batchItemFailures": []}
    assert [run["name"] for run in world.emr.runs.values()] == ["asya.flights.clean.0000000001"]


@pytest.mark.rule("4.entry.ends")
@pytest.mark.parametrize("body", [None, "[" * 100_000, "junk"])
def test_neither_a_stranger_nor_a_malformed_request_starts_a_run(
    world: HeavyWorld, request_event: dict[str, Any], body: str | None
) -> None:
    (record,) = request_event["Records"]
    stranger = {**record, "attributes": {**record["attributes"], "SenderId": "AIDASTRANGER"}}
    if body is not None:
        stranger = {**record, "body": body}
    assert Dispatcher(world.services).process({"Records": [stranger]}) == {"batchItemFailures": []}
    assert world.emr.runs == {}


def test_the_request_of_a_removed_actor_is_dropped_at_last(world: HeavyWorld, request_event: dict[str, Any]) -> None:
    last = received(request_event, LAST_RECEIVE)
    assert old_dispatcher(world).process(last) == {"batchItemFailures": []}
