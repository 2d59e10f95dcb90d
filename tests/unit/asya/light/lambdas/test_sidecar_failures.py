"""protocol §5, §8: handlers that fail, exceed their time limit, or give values that JSON cannot hold."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol import ids
from asya.protocol.mesh_table import Actor, Policy, Resiliency, Rule
from asya.protocol.times import format_time
from asya.runtime.load import LoadError
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import message
from tests.doubles.light_actor import echo, never, run
from tests.doubles.mesh_world import MeshWorld
from tests.doubles.waiting import Clock


def boom(_: Any) -> Any:
    raise ConnectionResetError("peer")


POLICY = Resiliency(
    policies={"default": Policy(max_attempts=2, initial_delay=3.0)},
    rules=(Rule(errors=("Timeout",), policy="default"),),
)


def test_8_without_a_policy_a_failure_goes_to_x_sink(world: MeshWorld) -> None:
    assert run(world, boom, message()) == []
    (failed,) = world.sent("x-sink")
    assert failed.status is not None
    assert (failed.status.phase, failed.status.reason) == ("failed", "RuntimeError")
    assert failed.status.error is not None
    assert failed.status.error.type == "ConnectionResetError"
    assert failed.status.error.mro == ("ConnectionError", "OSError", "Exception")
    assert "in boom" in failed.status.error.traceback


@pytest.mark.rule("8.retry")
def test_8_a_retry_then_exhausted(world: MeshWorld) -> None:
    assert run(world, boom, message(), resiliency=POLICY) == []
    (again,) = world.messages("infer")
    assert again.delay == 3
    assert run(world, boom, again.body, resiliency=POLICY) == []
    (failed,) = world.sent("x-sink")
    assert failed.status is not None
    assert (failed.status.reason, failed.status.attempt, failed.status.max_attempts) == ("PolicyExhausted", 2, 2)


@pytest.mark.rule("13.retry")
def test_13_a_retry_is_reported_with_its_error_and_the_next_attempt(world: MeshWorld) -> None:
    clock = Clock()
    assert run(world, boom, message(), resiliency=POLICY, clock=clock) == []
    (report,) = [event for event in world.gateway.events if event.data.retry is not None]
    assert (report.status, report.position, report.attempt, report.data.actor) == ("processing", 1, 1, "infer")
    retry = report.data.retry
    assert retry is not None
    assert (retry.error.type, retry.max_attempts) == ("ConnectionResetError", 2)
    assert not retry.error.traceback  # it travels in the envelope
    assert retry.next_at == format_time(clock.moment + timedelta(seconds=3))
    (again,) = world.messages("infer")
    world.gateway.events.clear()
    assert run(world, boom, again.body, resiliency=POLICY) == []
    assert [event.data.retry for event in world.gateway.events] == [None, None]


@pytest.mark.rule("13.retry")
def test_13_a_refused_retry_is_still_a_problem(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-infer"] = Refusal("call", "AccessDenied")
    assert run(world, boom, message(), resiliency=POLICY) == ["message-0"]
    assert world.gateway.events[-1].data.problem is not None
    assert world.gateway.events[-1].data.retry is None


@pytest.mark.rule("1.mutated-argument")
def test_1_a_handler_that_mutated_its_argument_and_failed_changed_nothing(world: MeshWorld) -> None:
    def mutate(payload: Any) -> Any:
        payload["text"] = "mutated"
        payload["more"] = {1, 2}
        raise ValueError("after the fact")

    def mutate_and_return_nothing(payload: Any) -> None:
        payload.clear()

    text = b'{ "text" : "hello", "n": 1.50 }'
    body = message(payload=None).replace(b'"payload":null', b'"payload":' + text)
    assert run(world, mutate, body) == []
    assert run(world, mutate, body, resiliency=POLICY) == []
    assert run(world, mutate_and_return_nothing, body) == []
    for envelope in (*world.sent("x-sink"), *world.sent("infer")):
        assert bytes(envelope.payload) == text


@pytest.mark.rule("7.discarded")
def test_7_what_a_handler_set_before_it_failed_is_discarded(world: MeshWorld) -> None:
    def fail(_: Any) -> Iterator[Any]:
        yield ("SET", ".headers.mine", 1)
        yield ("SET", ".route.next", [])
        raise ValueError

    assert run(world, fail, message()) == []
    (failed,) = world.sent("x-sink")
    assert "mine" not in failed.headers
    assert failed.route.next == ("post",)


@pytest.mark.rule("4.tracebacks")
def test_4_huge_messages_and_tracebacks_are_cut(world: MeshWorld) -> None:
    def fail(_: Any) -> Any:
        raise ValueError("x" * 3_000_000)

    assert run(world, fail, message()) == []
    (sent,) = world.messages("x-sink")
    assert len(sent.body) < 50_000


@pytest.mark.rule("5.11.crash")
@pytest.mark.parametrize("leave", [SystemExit, KeyboardInterrupt])
def test_5_11_leaving_by_system_exit_is_a_crash_of_that_message_only(
    world: MeshWorld, leave: type[BaseException]
) -> None:
    def exits(payload: Any) -> Any:
        if payload == "leave":
            raise leave(1)
        return payload

    assert run(world, exits, message(payload="leave"), message(id="env-2")) == []
    (failed,) = world.sent("x-sump")
    assert failed.status is not None
    assert (failed.status.reason, failed.id) == ("RuntimeCrash", "env-1")
    assert [envelope.id for envelope in world.sent("post")] == ["env-2"]


FOREVER = 600.0
"""Seconds: a handler that takes so long comes to an end by its time limit only."""


def sleeps(_: Any) -> Any:
    time.sleep(FOREVER)


async def sleeps_async(_: Any) -> Any:
    await asyncio.sleep(FOREVER)


def sleeps_in_a_generator(_: Any) -> Iterator[Any]:
    time.sleep(FOREVER)
    yield 1


@pytest.mark.rule("5.11.own-limit")
@pytest.mark.parametrize("handler", [sleeps, sleeps_async, sleeps_in_a_generator])
@pytest.mark.slow
def test_5_11_the_time_limit_interrupts_and_the_next_message_is_served(
    world: MeshWorld, handler: Callable[[Any], Any]
) -> None:
    def first_sleeps(payload: Any) -> Any:
        return handler(payload) if payload == "sleep" else payload

    # The limit is the second one's too, and that one is to keep it on a slow machine.
    assert run(world, first_sleeps, message(payload="sleep"), message(id="env-2"), timeout=1.0) == []
    (failed,) = world.sent("x-sump")
    assert failed.status is not None
    assert failed.status.error is not None
    assert failed.status.error.message == "Runtime did not respond within 1s"
    assert failed.status.error.mro == ()
    assert [envelope.id for envelope in world.sent("post")] == ["env-2"]


@pytest.mark.rule("5.11.literal-rule")
def test_5_11_a_timeout_is_retried_by_a_literal_rule_only(world: MeshWorld) -> None:
    assert run(world, sleeps, message(), timeout=0.05, resiliency=POLICY) == []
    assert world.targets == ["infer"]


@pytest.mark.rule("6.raises")
def test_6_an_error_after_the_first_frame_is_a_failed_child(world: MeshWorld) -> None:
    def half(_: Any) -> Iterator[Any]:
        yield {"part": 0}
        raise ValueError("then this")

    assert run(world, half, message(), resiliency=POLICY) == []
    assert [envelope.id for envelope in world.sent("post")] == ["env-1"]
    (failed,) = world.sent("x-sink")
    assert failed.id == ids.child_id("env-1", 0, 1, "error")
    assert failed.parent_id == "env-1"
    assert failed.root_id == "env-1"


@pytest.mark.rule("6.streamed")
def test_5_12_a_bad_target_after_the_first_frame_is_a_failed_child_too(world: MeshWorld) -> None:
    closed = []

    def astray(_: Any) -> Iterator[Any]:
        try:
            yield {"part": 0}
            yield ("SET", ".route.next", ["nowhere"])
            yield {"part": 1}
            yield {"part": 2}
        finally:
            closed.append(True)

    assert run(world, astray, message()) == []
    assert world.targets == ["post", "x-sump"]
    assert world.sent("x-sump")[0].parent_id == "env-1"
    assert closed == [True]


@pytest.mark.rule("5.12")
def test_5_12_being_denied_is_no_unknown_actor_but_a_nack(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal("call", "AccessDenied")
    assert run(world, echo, message()) == ["message-0"]
    assert world.sent("x-sump") == []


def test_5_1_a_payload_that_no_value_can_hold_is_never_given_to_the_handler(world: MeshWorld) -> None:
    body = message(payload=None).replace(b'"payload":null', b'"payload":1e999')
    assert run(world, never, body) == []
    assert world.targets == ["x-sump"]


@pytest.mark.rule("6.fan_out_lists")
def test_6_fan_out_lists(world: MeshWorld) -> None:
    assert run(world, lambda _: [1, 2], message(), fan_out_lists=True) == []
    assert len(world.sent("post")) == 2


def test_fair_by_travels_to_the_queue_of_the_actor_that_asks_for_it(world: MeshWorld) -> None:
    others = {"post": Actor(kind="handler", handler="x.y", fair_by="tenant")}
    assert run(world, echo, message(), message(id="e2", headers={"tenant": "two words"}), others=others) == []
    groups = [sent.group for sent in world.messages("post")]
    assert groups[0] == "acme"
    assert len(groups[1] or "") == 64


@pytest.mark.rule("6.load-errors")
def test_6_a_handler_that_cannot_be_loaded_is_named(world: MeshWorld) -> None:
    with pytest.raises(LoadError, match=r"handler 'no\.where'"):
        build_sidecar(world.light(echo, name="no.where"))
    with pytest.raises(LoadError, match="actor 'infer' is of kind 'spark' and has no handler"):
        build_sidecar(world.light(echo, kind="spark", name=None))


def test_handlers_of_a_batch_run_one_after_the_other_in_the_main_thread(world: MeshWorld) -> None:
    threads = []
    run(world, lambda _: threads.append(threading.current_thread()), message(), message(id="env-2"))
    assert threads == [threading.main_thread()] * 2


@pytest.mark.rule("7.FLY")
def test_7_what_a_handler_says_to_those_who_look_on_is_reported_and_nothing_else(world: MeshWorld) -> None:
    def talks(payload: Any) -> Iterator[Any]:
        for number in range(3):
            yield "FLY", {"text": f"token {number}"}
        yield payload
        yield "FLY", {"text": "after"}

    assert run(world, talks, message()) == []
    assert [(said.sequence, msgspec.json.decode(said.data)["text"]) for said in world.gateway.partials] == [
        (0, "token 0"),
        (1, "token 1"),
        (2, "token 2"),
        (3, "after"),
    ]
    assert {(said.id, said.actor, said.position, said.receive) for said in world.gateway.partials} == {
        ("env-1", "infer", 1, 1)
    }
    assert len(world.sent("post")) == 1


def test_7_what_json_cannot_hold_is_the_handlers_mistake(world: MeshWorld) -> None:
    def talks(_: Any) -> Iterator[Any]:
        yield "FLY", {"text": {1, 2}}

    assert run(world, talks, message()) == []
    assert world.gateway.partials == []
    (ended,) = world.sent("x-sink")
    assert ended.status is not None
    assert ended.status.error is not None
    assert ended.status.error.type == "TypeError" or "set" in ended.status.error.message


def test_3_stealth_envelopes_say_nothing_to_those_who_look_on(world: MeshWorld) -> None:
    def talks(payload: Any) -> Iterator[Any]:
        yield "FLY", {"text": "psst"}
        yield payload

    assert run(world, talks, message(headers={"x-asya-mesh-status": "off"})) == []
    assert world.gateway.partials == []
