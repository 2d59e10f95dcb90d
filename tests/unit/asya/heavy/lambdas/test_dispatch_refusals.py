"""protocol §13, problem.senders: x-sink refuses the envelopes that are left out of a run."""

from collections.abc import Iterator

import pytest

from asya.heavy.lambdas.dispatch import Dispatcher
from asya.protocol.events import TaskEvent
from tests.doubles.heavy import HeavyWorld, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


@pytest.mark.rule("13.problem.senders")
def test_a_refused_envelope_that_is_left_out_of_a_run_has_a_problem(world: HeavyWorld) -> None:
    world.send("a")
    world.send("child", parent_id="root", headers={"x-asya-root": "root"})
    world.enqueue()
    world.gateway.canceled = {"child"}
    world.sqs.delete_queue(QueueUrl=world.services.settings.queue_url("x-sink"))
    requests = world.receive("x-dispatch")
    assert Dispatcher(world.services_of("x-dispatch")).process(requests)["batchItemFailures"]
    (report,) = (
        event for event in world.gateway.events if isinstance(event, TaskEvent) and event.data.problem is not None
    )
    assert (report.id, report.data.actor) == ("child", "clean")
    assert report.data.problem is not None
    assert report.data.problem.message.startswith(
        "the queue of x-sink (asya-flights-x-sink) refuses messages of clean: "
    )
    assert len(world.items("PENDING#clean")) == 2

    world.sqs.create_queue(QueueName="asya-flights-x-sink")
    Dispatcher(world.services_of("x-dispatch")).process(requests)
    assert [body["id"] for body in world.bodies("x-sink")] == ["child"]
    assert [member.id for member in world.manifest(1).members] == ["a"]
