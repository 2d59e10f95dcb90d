"""protocol §11: x-resume, with redeliveries and crashes."""

import json

import msgspec
import pytest

from asya.protocol import codec
from asya.tasks.task_state import TaskState
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import message, raw, status
from tests.doubles.mesh_world import MeshWorld
from tests.doubles.pausing import (
    KEY,
    ROUTE,
    FakeEvents,
    at_x_resume,
    continued,
    here,
    run_pause,
    status_of,
    stored,
)


def test_resumed_it_goes_to_the_next_actor_with_the_answers(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here(status=status(deadline_at="2126-11-20T12:00:00Z")))
    assert continued(world) == []
    (sent,) = world.sent("post")
    assert (sent.id, sent.route.prev, sent.route.curr) == ("env-1", ("prep", "approve", "x-resume"), "post")
    assert msgspec.json.decode(sent.payload) == {"text": "hello", "approved": True}
    assert (status_of(sent).phase, status_of(sent).actor) == ("pending", "post")
    assert str(status_of(sent).deadline_at) > "2126-11-20T15:00:00"
    assert [name for name in sent.headers if "pause" in name or "resume" in name] == []
    assert json.loads(world.s3.content(KEY))["resumed"] is True
    assert world.gateway.reported("env-1")[-3:] == ["received", "processing", "completed"]
    assert {event.position for event in world.gateway.events} == {1, 2}


@pytest.mark.rule("11.resume.no-pre-flight")
def test_it_asks_for_no_state(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here())
    world.state_reads.asked.clear()
    world.states["env-1"] = TaskState(id="env-1", status="paused", pause_epoch=99)
    assert continued(world) == []
    assert world.state_reads.asked == []
    assert world.targets == ["post"]


@pytest.mark.rule("11.resume.tombstone")
def test_resumed_again_nothing_more_leaves(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here())
    body = codec.encode(codec.decode(world.s3.content(KEY)).with_headers({"x-asya-resume-input": raw({})}))
    assert at_x_resume(world, body) == []
    assert at_x_resume(world, body, times=2) == []
    assert world.targets == ["post"]


@pytest.mark.rule("11.resume.tombstone")
def test_the_tombstone_comes_after_the_sending(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here())
    body = codec.encode(codec.decode(world.s3.content(KEY)))
    world.sqs.refuse["asya-shop-post"] = [Refusal(sender_fault=True)]
    assert at_x_resume(world, body) == ["message-0"]
    assert "resumed" not in stored(world)
    assert at_x_resume(world, body, times=2) == []
    assert world.targets == ["post"]


@pytest.mark.rule("11.resume.tombstone")
def test_without_a_tombstone_the_same_is_sent_again(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here())
    body = codec.encode(codec.decode(world.s3.content(KEY)))
    world.s3.fails = lambda action, key: action == "put"
    assert at_x_resume(world, body) == ["message-0"]
    world.s3.fails = lambda action, key: False
    assert at_x_resume(world, body, times=2) == []
    first, second = world.sent("post")
    assert (first.id, first.route, first.payload) == (second.id, second.route, second.payload)


def test_at_the_end_of_the_route_it_succeeds(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here(route=ROUTE | {"next": []}))
    continued(world)
    (sent,) = world.sent("x-sink")
    assert (status_of(sent).phase, sent.route.curr) == ("succeeded", "")


def test_a_route_that_leads_nowhere_fails(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here(route=ROUTE | {"next": ["nobody"]}))
    continued(world)
    (sent,) = world.sent("x-sump")
    assert status_of(sent).reason == "RouteMismatch"


def test_headers_that_nobody_of_the_mesh_wrote_end_in_the_sump(world: MeshWorld) -> None:
    body = message(route={"prev": [], "curr": "x-resume", "next": ["post"]}, headers={"x-asya-pause": {"epoch": "x"}})
    assert at_x_resume(world, body) == []
    assert [status_of(sent).reason for sent in world.sent("x-sump")] == ["ParseError"]


def test_an_envelope_that_never_paused_passes(world: MeshWorld) -> None:
    assert at_x_resume(world, message(route={"prev": [], "curr": "x-resume", "next": ["post"]})) == []
    assert world.targets == ["post"]


@pytest.mark.rule("13.problem.senders")
def test_a_queue_that_refuses_the_resumed_envelope_is_a_problem_of_its_task(world: MeshWorld, bus: FakeEvents) -> None:
    run_pause(world, here())
    world.sqs.refuse_always["asya-shop-post"] = Refusal("call", "AccessDenied")
    assert continued(world) == ["message-0"]
    (problem,) = (event.data.problem for event in world.gateway.events if event.data.problem is not None)
    assert problem.message == "the queue of post (asya-shop-post) refuses messages of x-resume: AccessDenied"
