"""protocol §11, x-checkpoint: stores a copy of the envelope and routes it on."""

import json

import pytest

from asya.ends.lambdas.wiring import build_checkpoint
from asya.protocol.mesh_table import Actor
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import mesh, message, status
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

MESH = mesh({"x-checkpoint": Actor(kind="crew")})
ROUTE = {"prev": ["prep"], "curr": "x-checkpoint", "next": ["infer", "post"]}
KEY = "results/checkpoint/env-1/1.json"


def run(world: MeshWorld, *bodies: bytes) -> list[str]:
    return batch_failures(build_checkpoint(world.services("x-checkpoint", MESH)).process(sqs_event(*bodies)))


def here(**members: object) -> bytes:
    return message(**({"route": ROUTE} | members))


@pytest.mark.rule("11.checkpoint")
def test_the_envelope_is_kept_before_the_shift_and_goes_on_with_its_payload_untouched(world: MeshWorld) -> None:
    body = here().replace(b'{"text":"hello"}', b'{"text" : "hello", "n": 1.0}')
    assert run(world, body) == []
    stored = json.loads(world.s3.content(KEY))
    assert (stored["route"], stored["payload"]) == (ROUTE, {"text": "hello", "n": 1.0})
    (sent,) = world.sent("infer")
    assert (sent.id, sent.route.prev, sent.route.curr) == ("env-1", ("prep", "x-checkpoint"), "infer")
    assert bytes(sent.payload) == b'{"text" : "hello", "n": 1.0}'
    assert sent.status is not None
    assert (sent.status.phase, sent.status.actor) == ("pending", "infer")


def test_it_is_a_hop_like_any_other_in_the_record(world: MeshWorld) -> None:
    run(world, here())
    assert world.gateway.reported("env-1") == ["received", "processing", "completed"]
    assert {event.position for event in world.gateway.events} == {1}


def test_at_the_end_of_the_route_it_goes_to_the_sink(world: MeshWorld) -> None:
    run(world, here(route=ROUTE | {"next": []}))
    (sent,) = world.sent("x-sink")
    assert sent.status is not None
    assert (sent.route.curr, sent.status.phase) == ("", "succeeded")


@pytest.mark.rule("11.checkpoint")
def test_nothing_passes_without_its_checkpoint(world: MeshWorld) -> None:
    world.s3.fails = lambda action, key: action == "put"
    assert run(world, here()) == ["message-0"]
    assert world.targets == []
    world.s3.fails = lambda action, key: False
    assert run(world, here()) == []
    assert world.targets == ["infer"]


def test_a_send_that_fails_keeps_the_message_and_done_again_it_writes_the_same(world: MeshWorld) -> None:
    world.sqs.refuse["asya-shop-infer"] = [Refusal(sender_fault=True)]
    assert run(world, here()) == ["message-0"]
    assert run(world, here()) == []
    assert world.s3.keys("results/checkpoint/") == [KEY]


@pytest.mark.rule("11.checkpoint")
def test_a_loop_leaves_a_checkpoint_at_each_position(world: MeshWorld) -> None:
    run(world, here(), here(route=ROUTE | {"prev": ["prep", "x-checkpoint", "infer"]}))
    assert world.s3.keys("results/checkpoint/") == [KEY, "results/checkpoint/env-1/3.json"]


@pytest.mark.parametrize(
    ("members", "end"),
    [
        ({"route": ROUTE | {"next": ["nobody"]}}, "x-sump"),
        ({"route": ROUTE | {"curr": "infer"}}, "x-sump"),
        ({"id": ""}, "x-sump"),
        ({"status": status(deadline_at="2026-01-01T00:00:00Z")}, "x-sink"),
    ],
)
def test_what_cannot_go_on_ends_as_at_any_actor(world: MeshWorld, members: dict[str, object], end: str) -> None:
    assert run(world, here(**members)) == []
    assert world.targets == [end]


def test_stealth_is_kept_but_not_reported(world: MeshWorld) -> None:
    run(world, here(headers={"x-asya-mesh-status": "off"}))
    assert world.gateway.events == []
    assert world.s3.keys("results/checkpoint/") == [KEY]


@pytest.mark.rule("13.problem.senders")
@pytest.mark.parametrize("members", [{}, {"status": ...}], ids=["with a status", "as a sender wrote it"])
def test_a_queue_that_refuses_the_envelope_is_a_problem_of_its_task(
    world: MeshWorld, members: dict[str, object]
) -> None:
    world.sqs.refuse_always["asya-shop-infer"] = Refusal("call", "AccessDenied")
    assert run(world, here(**members)) == ["message-0"]
    (problem,) = (event.data.problem for event in world.gateway.events if event.data.problem is not None)
    assert problem.message == "the queue of infer (asya-shop-infer) refuses messages of x-checkpoint: AccessDenied"
