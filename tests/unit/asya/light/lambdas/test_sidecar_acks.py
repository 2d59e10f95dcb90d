"""protocol §4: the messages that a sidecar acknowledges, and those that it leaves on the queue."""

from collections.abc import Iterator
from typing import Any

import pytest

from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import message
from tests.doubles.light_actor import LAST, echo, run
from tests.doubles.mesh_world import MeshWorld


@pytest.mark.rule("4.ack-after-acceptance")
def test_4_a_message_is_acked_only_when_all_its_frames_were_accepted(world: MeshWorld) -> None:
    def split(_: Any) -> Iterator[Any]:
        yield 1
        yield ("SET", ".route.next", ["rescue"])
        yield 2

    world.sqs.refuse_always["asya-shop-rescue"] = Refusal()
    assert run(world, split, message(), message(id="env-2")) == ["message-0", "message-1"]
    assert run(world, echo, message(id="env-3")) == []


def test_4_only_the_message_whose_sending_failed_stays(world: MeshWorld) -> None:
    world.sqs.refuse["asya-shop-post"] = [Refusal(code="InvalidMessageContents", sender_fault=True)]
    assert run(world, echo, message(), message(id="env-2")) == ["message-0"]
    assert [envelope.id for envelope in world.sent("post")] == ["env-2"]
    assert world.sqs.visibility == {"receipt-0": 5}


@pytest.mark.rule("4.nack")
def test_4_a_throttled_send_keeps_it_and_nothing_reaches_x_sump(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal("call", "ThrottlingException")
    assert run(world, echo, message()) == ["message-0"]
    assert world.targets == []


@pytest.mark.rule("4.neighbours")
def test_4_the_most_received_goes_last_and_each_is_deleted_as_it_finishes(world: MeshWorld) -> None:
    order = []

    def note(payload: Any) -> Any:
        order.append((payload, tuple(world.sqs.deleted)))
        return payload

    bodies = [message(id=f"env-{n}", payload=n) for n in range(3)]
    assert run(world, note, *bodies, receive_counts={0: 3, 1: 2}) == []
    assert order == [(2, ()), (1, ("receipt-2",)), (0, ("receipt-2", "receipt-1"))]


@pytest.mark.rule("3.payload-ref")
def test_4_a_large_result_travels_by_claim_check_and_arrives_whole(world: MeshWorld) -> None:
    text = "x" * 1_200_000
    assert run(world, lambda _: {"text": text}, message()) == []
    (sent,) = world.messages("post")
    assert len(sent.body) < 2000
    found: list[Any] = []
    assert run(world, found.append, sent.body, actor="post") == []
    assert found == [{"text": text}]


@pytest.mark.rule("4.claim-check.trouble")
def test_4_a_payload_that_cannot_be_stored_keeps_the_message(world: MeshWorld) -> None:
    world.s3.fails = lambda action, key: action == "put"
    assert run(world, lambda _: "x" * 1_200_000, message(), message(id="env-2")) == ["message-0", "message-1"]


@pytest.mark.rule("4.claim-check.trouble")
def test_4_a_payload_that_cannot_be_fetched_keeps_the_message_alone(world: MeshWorld) -> None:
    run(world, lambda _: "x" * 1_200_000, message())
    (claimed,) = world.messages("post")
    world.sqs.sent.clear()
    world.s3.fails = lambda action, key: action == "get"
    assert run(world, echo, claimed.body, message(route=LAST | {"curr": "post"}), actor="post") == ["message-0"]
    assert world.targets == ["x-sink"]


@pytest.mark.rule("4.claim-check.bad-reference")
def test_4_a_missing_payload_object_is_a_parse_error_in_x_sump(world: MeshWorld) -> None:
    run(world, lambda _: "x" * 1_200_000, message())
    (claimed,) = world.messages("post")
    world.sqs.sent.clear()
    world.s3.objects.clear()
    assert run(world, echo, claimed.body, actor="post") == []
    (failed,) = world.sent("x-sump")
    assert failed.id == "env-1"
    assert failed.status is not None
    assert failed.status.reason == "ParseError"
