"""protocol §5: the sidecar of a light actor, from a Lambda event to what is sent, reported and acked."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec
import pytest

from asya.lambdas import sidecar
from asya.protocol import ids
from asya.protocol.events import TaskState
from asya.protocol.mesh_table import Actor, Policy, Resiliency, Rule
from asya.runtime.load import LoadError
from tests.doubles.envelopes import message, status
from tests.doubles.mesh_world import MeshWorld, kept, recorded, sqs_event
from tests.doubles.sqs import Refusal

LAST = {"prev": ["prep"], "curr": "infer", "next": []}
LONG_AGO = "2020-01-01T00:00:00Z"
FAR_AHEAD = "2126-01-01T00:00:00Z"


def echo(payload: Any) -> Any:
    return payload


def run(world: MeshWorld, handler: Callable[[Any], Any], *bodies: bytes | str, **options: Any) -> list[str]:
    """Work through one batch; the ids of the messages that stay."""
    counts = options.pop("receive_counts", None)
    actor = sidecar.build(world.light(handler, **options))
    return kept(actor.process(sqs_event(*bodies, receive_counts=counts)))


# --- the ordinary way


def test_a_recorded_batch_goes_on_to_the_next_actor(world: MeshWorld) -> None:
    actor = sidecar.build(world.light(lambda payload: payload | {"seen": True}))
    assert kept(actor.process(recorded("sqs-batch"))) == []
    assert world.targets == ["post", "post", "post"]
    assert [envelope.id for envelope in world.sent("post")] == ["env-1", "env-2", "env-3"]
    first = world.sent("post")[0]
    assert msgspec.json.decode(first.payload) == {"text": "Hello from env-1", "cleaned": True, "seen": True}
    assert str(first.header("traceparent")).startswith("00-0af7651916cd43dd8448eb211c80319c-")
    assert world.gateway.reported("env-1") == ["received", "processing", "completed"]
    assert len(world.gateway.queries) == 1  # one pre-flight call for the whole batch


def test_the_end_of_a_route_is_x_sink(world: MeshWorld) -> None:
    assert run(world, echo, message(route=LAST)) == []
    (ended,) = world.sent("x-sink")
    assert ended.status is not None
    assert (ended.status.phase, ended.status.reason) == ("succeeded", "Completed")
    assert ended.route.curr == ""


def test_14_older_shapes_leave_in_the_new_one(world: MeshWorld) -> None:
    actor = sidecar.build(world.light(echo))
    assert kept(actor.process(recorded("sqs-older-shapes"))) == []
    assert world.sent("post")[0].route.prev == ("prep", "infer")
    (step,) = world.sent("x-sink")
    assert step.id == ids.id_of_message("2e1424d4-f796-459a-8184-9c92662be6da")


def test_4_a_fan_out_has_derived_children_and_a_redelivery_the_same_ones(world: MeshWorld) -> None:
    def split(payload: Any) -> Iterator[Any]:
        yield from ({"part": n} for n in range(13))

    for _ in range(2):
        assert run(world, split, message()) == []
    found = [envelope.id for envelope in world.sent("post")]
    assert found[:13] == found[13:] == ["env-1", *(ids.child_id("env-1", 0, 1, n) for n in range(1, 13))]
    assert world.gateway.reported("env-1").count("completed") == 2  # once per run, with its first frame


def test_5_10_no_frame_ends_well_and_is_reported_completed(world: MeshWorld) -> None:
    assert run(world, lambda _: None, message()) == []
    (ended,) = world.sent("x-sink")
    assert ended.route.curr == "infer"
    assert world.gateway.reported("env-1") == ["received", "processing", "completed"]


def test_5_8_a_frame_is_on_the_wire_while_the_handler_is_still_at_work(world: MeshWorld) -> None:
    on_the_wire = []

    def slow(_: Any) -> Iterator[Any]:
        yield {"part": 0}
        on_the_wire.append(world.sqs.wait_until_sent("asya-shop-post", 1))
        yield {"part": 1}
        on_the_wire.append(world.sqs.wait_until_sent("asya-shop-post", 2))

    assert run(world, slow, message(), timeout=20.0) == []
    assert on_the_wire == [True, True]


def test_5_8_completed_is_told_once_however_many_frames_there_are(world: MeshWorld) -> None:
    assert run(world, lambda payload: (yield from (payload, payload, payload)), message()) == []
    assert len(world.sent("post")) == 3
    assert world.gateway.reported("env-1").count("completed") == 1


def test_5_8_so_is_that_of_an_async_generator(world: MeshWorld) -> None:
    on_the_wire = []

    async def slow(_: Any) -> AsyncIterator[Any]:
        yield {"part": 0}
        on_the_wire.append(await asyncio.to_thread(world.sqs.wait_until_sent, "asya-shop-post"))
        yield {"part": 1}

    assert run(world, slow, message(), timeout=20.0) == []
    assert on_the_wire == [True]


def test_7_the_abi_rewrites_the_route_ahead(world: MeshWorld) -> None:
    def route(payload: Any) -> Iterator[Any]:
        envelope_id = yield ("GET", ".id")
        yield ("SET", ".route.next[:0]", ["rescue"])
        yield ("SET", ".headers.seen_by", envelope_id)
        yield payload
        yield ("DEL", ".route.next")
        yield payload

    assert run(world, route, message()) == []
    assert world.targets == ["rescue", "x-sink"]
    assert world.sent("rescue")[0].header("seen_by") == "env-1"
    assert world.sent("rescue")[0].route.next == ("post",)


def test_6_a_typed_handler_gets_its_type_and_a_mismatch_is_its_error(world: MeshWorld) -> None:
    def typed(payload: int) -> int:
        return payload

    import dataclasses

    @dataclasses.dataclass
    class Text:
        text: str

    def by_class(payload: Any) -> Any:
        return payload.text.upper()

    by_class.__annotations__ = {"payload": Text, "return": str}
    assert run(world, by_class, message(), message(id="env-2", payload={"text": 5})) == []
    assert msgspec.json.decode(world.sent("post")[0].payload) == "HELLO"
    (failed,) = world.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert "payload.text" in failed.status.error.message


# --- acknowledgement


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


def test_4_a_throttled_send_keeps_it_and_nothing_reaches_x_sump(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal("call", "ThrottlingException")
    assert run(world, echo, message()) == ["message-0"]
    assert world.targets == []


def test_4_the_most_received_goes_last_and_each_is_deleted_as_it_finishes(world: MeshWorld) -> None:
    order = []

    def note(payload: Any) -> Any:
        order.append((payload, tuple(world.sqs.deleted)))
        return payload

    bodies = [message(id=f"env-{n}", payload=n) for n in range(3)]
    assert run(world, note, *bodies, receive_counts={0: 3, 1: 2}) == []
    assert order == [(2, ()), (1, ("receipt-2",)), (0, ("receipt-2", "receipt-1"))]


def test_4_a_large_result_travels_by_claim_check_and_arrives_whole(world: MeshWorld) -> None:
    text = "x" * 1_200_000
    assert run(world, lambda _: {"text": text}, message()) == []
    (sent,) = world.messages("post")
    assert len(sent.body) < 2000
    found: list[Any] = []
    assert run(world, found.append, sent.body, actor="post") == []
    assert found == [{"text": text}]


def test_4_a_payload_that_cannot_be_stored_keeps_the_message(world: MeshWorld) -> None:
    world.s3.fails = lambda operation, key: operation == "put"
    assert run(world, lambda _: "x" * 1_200_000, message(), message(id="env-2")) == ["message-0", "message-1"]


def test_4_a_payload_that_cannot_be_fetched_keeps_the_message_alone(world: MeshWorld) -> None:
    run(world, lambda _: "x" * 1_200_000, message())
    (claimed,) = world.messages("post")
    world.sqs.sent.clear()
    world.s3.fails = lambda operation, key: operation == "get"
    assert run(world, echo, claimed.body, message(route=LAST | {"curr": "post"}), actor="post") == ["message-0"]
    assert world.targets == ["x-sink"]


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


# --- before the handler


def never(_: Any) -> Any:
    raise AssertionError("the handler must not be called")


@pytest.mark.parametrize("body", ["Hello", '{"id": "env-9"}', "\ud800", "[1]"])
def test_5_1_what_is_no_envelope_is_acked_because_x_sump_has_it(world: MeshWorld, body: str) -> None:
    assert run(world, never, body) == []
    (failed,) = world.sent("x-sump")
    assert failed.id == ("env-9" if "env-9" in body else ids.id_of_message("message-0"))
    assert world.targets == ["x-sump"]


def test_5_1_the_log_names_the_id_and_the_message(world: MeshWorld, caplog: pytest.LogCaptureFixture) -> None:
    actor = sidecar.build(world.light(never))
    actor.process(recorded("sqs-not-an-envelope"))
    message_id = "059f36b4-87a3-44ab-83d2-661975830a7d"
    (line,) = (vars(record) for record in caplog.records if record.getMessage() == "handler not called")
    assert (line["message_id"], line["envelope_id"]) == (message_id, ids.id_of_message(message_id))
    assert line["why"] == "ParseError"


@pytest.mark.parametrize(
    ("headers", "target"),
    [({"x-asya-route-override": '"\\ud800"'}, "x-sump"), ({"x-asya-mesh-status": "1e999"}, "x-sump")],
)
def test_5_1_headers_that_nobody_can_read_crash_nothing(world: MeshWorld, headers: dict[str, str], target: str) -> None:
    text = ",".join(f'"{name}":{value}' for name, value in headers.items())
    body = message(headers=...)[:-1].decode() + f',"headers":{{{text}}}}}'
    assert run(world, echo, body, message(id="env-2")) == []
    assert world.targets == ["post", target]


def test_5_3_past_its_deadline(world: MeshWorld) -> None:
    assert run(world, never, message(status=status(deadline_at=LONG_AGO))) == []
    (ended,) = world.sent("x-sink")
    assert ended.status is not None
    assert (ended.status.phase, ended.status.reason) == ("failed", "Timeout")


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        (TaskState(id="env-1", status="canceled"), "canceled"),
        (TaskState(id="env-1", status="running", root_status="canceled"), "canceled"),
        (TaskState(id="env-1", status="paused", pause_epoch=1), "paused"),
    ],
)
def test_5_4_canceled_or_paused_at_the_pre_flight(world: MeshWorld, state: TaskState, phase: str) -> None:
    world.gateway.states["env-1"] = state
    assert run(world, never, message(headers={"x-asya-root": "env-0"})) == []
    (ended,) = world.sent("x-sink")
    assert ended.status is not None
    assert ended.status.phase == phase
    assert [(query.id, query.root_id) for query in world.gateway.queries[0]] == [("env-1", "env-0")]


@pytest.mark.parametrize("trouble", ["status", "answer", "silent"])
def test_5_4_no_answer_within_a_second_means_go_on(world: MeshWorld, trouble: str) -> None:
    if trouble == "status":
        world.gateway.status = 503
    elif trouble == "answer":
        world.gateway.answer = b"what?"
    else:
        world.gateway.silent = True
    body = message(headers={"x-asya-mesh-status": "on"})
    began = time.monotonic()
    services = world.light(echo)
    services.progress.flush = lambda *_: None  # type: ignore[method-assign] # reports have a time limit of their own
    assert kept(sidecar.build(services).process(sqs_event(body))) == []
    assert time.monotonic() - began < 3.0
    assert world.targets == ["post"]


def test_3_mesh_status_off_means_no_call_to_the_gateway_at_all(world: MeshWorld) -> None:
    stealth = {"x-asya-mesh-status": "off"}
    assert run(world, echo, message(headers=stealth), message(id="env-2", headers=stealth, status=...)) == []
    assert (world.gateway.events, world.gateway.queries) == ([], [])
    assert world.targets == ["post", "post"]


def test_3_without_a_gateway_nothing_is_reported(world: MeshWorld) -> None:
    assert run(world, echo, message(status=...), reporting=False) == []
    assert world.targets == ["post"]


def test_3_a_forged_gateway_url_is_not_called(world: MeshWorld) -> None:
    with_other = message(headers={"x-asya-gateway-url": "http://169.254.169.254/"})
    assert run(world, echo, with_other) == []
    assert world.gateway.reported("env-1") == ["received", "processing", "completed"]


def test_5_4_an_envelope_without_a_status_is_registered_before_anything_leaves(world: MeshWorld) -> None:
    sent_when_registered = []

    def watch(path: str, body: bytes) -> None:
        if b'"registered"' in body:
            sent_when_registered.append(list(world.targets))

    world.gateway.watch = watch
    actor = sidecar.build(world.light(echo))
    assert kept(actor.process(recorded("sqs-raw-message"))) == []
    registered = next(event for event in world.gateway.events if event.status == "registered")
    assert (registered.id, registered.data.owner) == ("order-77", "AIDAEXAMPLEPERSON")
    assert sent_when_registered == [[]]
    (onward,) = world.sent("post")
    assert onward.status is not None
    assert onward.status.created_at == "2026-11-20T11:59:59.000000Z"
    assert world.gateway.queries == []


@pytest.mark.parametrize(("answer", "is_kept"), [(503, True), (429, True), (403, True), (404, False), (400, False)])
def test_5_registered_must_arrive(world: MeshWorld, answer: int, is_kept: bool) -> None:
    world.gateway.item_status["env-1", "registered"] = answer
    assert run(world, echo, message(status=...), message(id="env-2")) == (["message-0"] if is_kept else [])
    assert [envelope.id for envelope in world.sent("post")] == (["env-2"] if is_kept else ["env-1", "env-2"])


def test_5_progress_that_is_not_taken_never_fails_a_message(world: MeshWorld) -> None:
    for word in ("received", "processing", "completed"):
        world.gateway.item_status["env-1", word] = 503
    assert run(world, echo, message()) == []
    assert world.targets == ["post"]


def test_5_5_a_message_on_the_wrong_queue(world: MeshWorld) -> None:
    assert run(world, never, message(route={"prev": [], "curr": "post", "next": []})) == []
    assert world.targets == ["x-sump"]


def test_5_2_not_before_is_resent_as_it_came(world: MeshWorld) -> None:
    ahead = "2126-11-20T12:00:00Z"  # more than a day ahead counts as due now
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 500))
    waiting = message(headers={"x-asya-not-before": soon})
    assert run(world, echo, waiting, message(id="env-2", headers={"x-asya-not-before": ahead})) == []
    (again,) = world.messages("infer")
    assert again.body.encode() == waiting
    assert 490 <= again.delay <= 501
    assert [envelope.id for envelope in world.sent("post")] == ["env-2"]
    assert world.gateway.reported("env-1") == []


# --- failures


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


def test_8_a_retry_then_exhausted(world: MeshWorld) -> None:
    assert run(world, boom, message(), resiliency=POLICY) == []
    (again,) = world.messages("infer")
    assert again.delay == 3
    assert run(world, boom, again.body, resiliency=POLICY) == []
    (failed,) = world.sent("x-sink")
    assert failed.status is not None
    assert (failed.status.reason, failed.status.attempt, failed.status.max_attempts) == ("PolicyExhausted", 2, 2)


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


def test_7_what_a_handler_set_before_it_failed_is_discarded(world: MeshWorld) -> None:
    def fail(_: Any) -> Iterator[Any]:
        yield ("SET", ".headers.mine", 1)
        yield ("SET", ".route.next", [])
        raise ValueError

    assert run(world, fail, message()) == []
    (failed,) = world.sent("x-sink")
    assert "mine" not in failed.headers
    assert failed.route.next == ("post",)


def test_4_huge_messages_and_tracebacks_are_cut(world: MeshWorld) -> None:
    def fail(_: Any) -> Any:
        raise ValueError("x" * 3_000_000)

    assert run(world, fail, message()) == []
    (sent,) = world.messages("x-sink")
    assert len(sent.body) < 50_000


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


def sleeps(_: Any) -> Any:
    time.sleep(5)


async def sleeps_async(_: Any) -> Any:
    await asyncio.sleep(5)


def sleeps_in_a_generator(_: Any) -> Iterator[Any]:
    time.sleep(5)
    yield 1


@pytest.mark.parametrize("handler", [sleeps, sleeps_async, sleeps_in_a_generator])
def test_5_11_the_time_limit_interrupts_and_the_next_message_is_served(
    world: MeshWorld, handler: Callable[[Any], Any]
) -> None:
    def first_sleeps(payload: Any) -> Any:
        return handler(payload) if payload == "sleep" else payload

    began = time.monotonic()
    assert run(world, first_sleeps, message(payload="sleep"), message(id="env-2"), timeout=0.1) == []
    assert time.monotonic() - began < 3.0
    (failed,) = world.sent("x-sump")
    assert failed.status is not None
    assert failed.status.error is not None
    assert failed.status.error.message == "Runtime did not respond within 100ms"
    assert failed.status.error.mro == ()
    assert [envelope.id for envelope in world.sent("post")] == ["env-2"]


def test_5_11_a_timeout_is_retried_by_a_literal_rule_only(world: MeshWorld) -> None:
    assert run(world, sleeps, message(), timeout=0.05, resiliency=POLICY) == []
    assert world.targets == ["infer"]


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


def test_5_12_being_denied_is_no_unknown_actor_but_a_nack(world: MeshWorld) -> None:
    world.sqs.refuse_always["asya-shop-post"] = Refusal("call", "AccessDenied")
    assert run(world, echo, message()) == ["message-0"]
    assert world.sent("x-sump") == []


def test_5_1_a_payload_that_no_value_can_hold_is_never_given_to_the_handler(world: MeshWorld) -> None:
    body = message(payload=None).replace(b'"payload":null', b'"payload":1e999')
    assert run(world, never, body) == []
    assert world.targets == ["x-sump"]


def test_6_fan_out_lists(world: MeshWorld) -> None:
    assert run(world, lambda _: [1, 2], message(), fan_out_lists=True) == []
    assert len(world.sent("post")) == 2


def test_fair_by_travels_to_the_queue_of_the_actor_that_asks_for_it(world: MeshWorld) -> None:
    others = {"post": Actor(kind="handler", handler="x.y", fair_by="tenant")}
    assert run(world, echo, message(), message(id="e2", headers={"tenant": "two words"}), others=others) == []
    groups = [sent.group for sent in world.messages("post")]
    assert groups[0] == "acme"
    assert len(groups[1] or "") == 64


def test_6_a_handler_that_cannot_be_loaded_is_named(world: MeshWorld) -> None:
    with pytest.raises(LoadError, match=r"handler 'no\.where'"):
        sidecar.build(world.light(echo, name="no.where"))
    with pytest.raises(LoadError, match="actor 'infer' is of kind 'spark' and has no handler"):
        sidecar.build(world.light(echo, kind="spark", name=None))


def test_handlers_of_a_batch_run_one_after_the_other_in_the_main_thread(world: MeshWorld) -> None:
    threads = []
    run(world, lambda _: threads.append(threading.current_thread()), message(), message(id="env-2"))
    assert threads == [threading.main_thread()] * 2


def test_7_what_a_handler_says_to_those_who_look_on_is_reported_and_nothing_else(world: MeshWorld) -> None:
    def talks(payload: Any) -> Iterator[Any]:
        for number in range(3):
            yield "FLY", {"text": f"token {number}"}
        yield payload
        yield "FLY", {"text": "after"}

    assert run(world, talks, message()) == []
    assert [(said.sequence, msgspec.json.decode(said.data)["text"]) for said in world.gateway.flies] == [
        (0, "token 0"),
        (1, "token 1"),
        (2, "token 2"),
        (3, "after"),
    ]
    assert {(said.id, said.actor, said.position, said.receive) for said in world.gateway.flies} == {
        ("env-1", "infer", 1, 1)
    }
    assert len(world.sent("post")) == 1


def test_7_what_json_cannot_hold_is_the_handlers_mistake(world: MeshWorld) -> None:
    def talks(_: Any) -> Iterator[Any]:
        yield "FLY", {"text": {1, 2}}

    assert run(world, talks, message()) == []
    assert world.gateway.flies == []
    (ended,) = world.sent("x-sink")
    assert ended.status is not None
    assert ended.status.error is not None
    assert ended.status.error.type == "TypeError" or "set" in ended.status.error.message


def test_3_stealth_envelopes_say_nothing_to_those_who_look_on(world: MeshWorld) -> None:
    def talks(payload: Any) -> Iterator[Any]:
        yield "FLY", {"text": "psst"}
        yield payload

    assert run(world, talks, message(headers={"x-asya-mesh-status": "off"})) == []
    assert world.gateway.flies == []
