"""Per-actor options of the sidecar: `frames: buffered` and `handler_mode` (protocol §6), `deduplicate` (§4), `keep_input` (§12)."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from asya import fan_out
from asya.function.aws import clients
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol import ids
from asya.protocol.mesh_table import Actor, CircuitBreaker, Policy, Resiliency, Rule
from asya.sidecar.options import KEEP_INPUT
from asya.testing.dynamo.tables import Table
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import message, status
from tests.doubles.light_actor import echo, never, run
from tests.doubles.mesh_world import MeshWorld, batch_failures, empty_table, emulated_table, sqs_event

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

RETRIED = Resiliency(policies={"default": Policy(max_attempts=3)})


# --- frames: buffered


def counting(calls: list[Any], *, fail_after: int | None = None) -> Callable[[Any], Iterator[Any]]:
    """A handler that never gives the same twice."""

    def handler(payload: Any) -> Iterator[Any]:
        calls.append(payload)
        for part in range(3):
            if part == fail_after:
                raise ValueError("half way")
            yield {"run": len(calls), "part": part}

    return handler


@pytest.mark.rule("6.buffered")
def test_6_buffered_frames_are_kept_before_any_of_them_is_sent(world: MeshWorld) -> None:
    kept_when_sent = []
    send = world.sqs.send_message_batch

    def watch(**request: Any) -> Any:
        kept_when_sent.append(world.s3.keys("buffered/"))
        return send(**request)

    world.sqs.send_message_batch = watch  # type: ignore[method-assign]
    assert run(world, counting([]), message(), frames="buffered") == []
    assert kept_when_sent  # in one call, or, on a slow machine, in several
    assert all(keys == ["buffered/infer/env-1/0/1.json"] for keys in kept_when_sent)
    assert [envelope.id for envelope in world.sent("post")] == [
        "env-1",
        *(ids.child_id("env-1", 0, 1, n) for n in (1, 2)),
    ]
    assert world.gateway.reported("env-1") == ["received", "processing", "completed"]


@pytest.mark.rule("6.buffered.re-run")
def test_6_a_re_run_sends_what_was_kept_without_calling_the_handler(world: MeshWorld) -> None:
    calls: list[Any] = []
    world.sqs.refuse["asya-shop-post"] = [Refusal(code="X", sender_fault=True)]
    assert run(world, counting(calls), message(), frames="buffered") == ["message-0"]
    assert run(world, counting(calls), message(), frames="buffered", receive_counts={0: 2}) == []
    assert len(calls) == 1
    runs = {json.loads(bytes(envelope.payload))["run"] for envelope in world.sent("post")}
    assert runs == {1}


@pytest.mark.rule("6.buffered.copy")
def test_6_a_copy_that_fails_does_not_contradict_a_fan_out(world: MeshWorld) -> None:
    """A send without an answer is repeated, so the second copy is a first delivery, too."""
    calls: list[Any] = []

    def split(payload: Any) -> Any:
        calls.append(payload)
        if len(calls) > 1:
            raise ConnectionError("the service is down")
        yield from fan_out([1, 2], to=["post"], at="gather")

    gather = {"gather": Actor(kind="fan_in")}
    for _ in range(2):
        assert run(world, split, message(), others=gather) == []
    assert len(calls) == 2
    assert sorted(world.targets) == ["gather", "gather", "post", "post", "post", "post"]
    first, second = (world.sent("post")[start : start + 2] for start in (0, 2))
    assert [envelope.id for envelope in first] == [envelope.id for envelope in second]
    assert "failed" not in world.gateway.reported("env-1")


@pytest.mark.rule("6.buffered.copy")
def test_6_a_copy_that_an_open_circuit_rejects_does_not_contradict_a_fan_out(world: MeshWorld) -> None:
    """A rule takes rejected envelopes elsewhere, but this one has fanned out already."""
    calls: list[Any] = []

    def split(payload: Any) -> Any:
        calls.append(payload)
        if payload != {"text": "hello"}:
            raise ConnectionError("the service is down")
        yield from fan_out([1, 2], to=["post"], at="gather")

    resiliency = Resiliency(
        policies={"around": Policy(then_route=("rescue",))},
        rules=(Rule(errors=("CircuitOpen",), policy="around"),),
        circuit_breaker=CircuitBreaker(failures=1, window=3600, open_for=3600),
    )
    world.dynamodb.tables["asya-shop-breaker"] = Table()
    options: dict[str, Any] = {"others": {"gather": Actor(kind="fan_in")}, "resiliency": resiliency}
    assert run(world, split, message(), **options) == []
    assert run(world, split, message(id="other", payload={}), **options) == []  # opens the circuit
    world.sqs.sent.clear()
    assert run(world, split, message(), **options) == []
    assert len(calls) == 2
    assert sorted(world.targets) == ["gather", "post", "post"]


@pytest.mark.rule("6.buffered")
def test_6_a_handler_that_fails_half_way_has_sent_nothing_and_is_retried(world: MeshWorld) -> None:
    calls: list[Any] = []
    assert run(world, counting(calls, fail_after=2), message(), frames="buffered", resiliency=RETRIED) == []
    assert world.targets == ["infer"]
    assert world.s3.keys("buffered/") == []
    (again,) = world.messages("infer")
    assert run(world, counting(calls), again.body, frames="buffered", resiliency=RETRIED) == []
    assert [json.loads(bytes(envelope.payload))["run"] for envelope in world.sent("post")] == [2, 2, 2]


def test_6_a_bad_target_fails_a_buffered_hop_before_anything_is_sent(world: MeshWorld) -> None:
    def astray(_: Any) -> Iterator[Any]:
        yield 1
        yield ("SET", ".route.next", ["nowhere"])
        yield 2

    assert run(world, astray, message(), frames="buffered") == []
    assert world.targets == ["x-sump"]
    assert world.sent("x-sump")[0].id == "env-1"
    assert world.s3.keys("buffered/") == []


@pytest.mark.rule("6.buffered.unknown-target")
def test_6_a_stored_list_whose_target_is_gone_stays_on_its_queue(world: MeshWorld) -> None:
    """A deployment removed the actor. Nobody knows whether frame 0 has left, so the hop has no end of its own."""

    def onward(_: Any) -> Iterator[Any]:
        yield ("SET", ".route.next", ["extra"])
        yield 1

    world.sqs.refuse["asya-shop-extra"] = [Refusal(code="X", sender_fault=True)]
    assert run(world, onward, message(), frames="buffered", others={"extra": Actor(kind="light")}) == ["message-0"]
    world.sqs.sent.clear()
    assert run(world, onward, message(), frames="buffered", receive_counts={0: 2}) == ["message-0"]
    assert [target for target in world.targets if target != "x-reports"] == []


def test_6_no_frames_are_kept_as_none(world: MeshWorld) -> None:
    calls: list[Any] = []
    for _ in range(2):
        assert run(world, calls.append, message(), frames="buffered") == []
    assert len(calls) == 1
    assert world.targets == ["x-sink", "x-sink"]


@pytest.mark.parametrize("action", ["get", "put"])
def test_6_frames_that_can_be_neither_found_nor_kept_keep_the_message(world: MeshWorld, action: str) -> None:
    world.s3.fails = lambda found, key: found == action and key.startswith("buffered/")
    assert run(world, counting([]), message(), frames="buffered") == ["message-0"]
    assert world.targets == []


@pytest.mark.rule("1.position")
def test_6_a_buffered_hop_is_told_apart_by_position_and_generation(world: MeshWorld) -> None:
    calls: list[Any] = []
    again = {"prev": ["prep", "infer"], "curr": "infer", "next": []}
    bodies = [message(), message(route=again), message(headers={"x-asya-generation": 1})]
    assert run(world, counting(calls), *bodies, frames="buffered") == []
    assert len(calls) == 3
    assert world.s3.keys("buffered/") == [
        "buffered/infer/env-1/0/1.json",
        "buffered/infer/env-1/0/2.json",
        "buffered/infer/env-1/1/1.json",
    ]


# --- deduplicate


@pytest.fixture(scope="module")
def client() -> "Iterator[DynamoDBClient]":
    with emulated_table("hops") as made:
        yield made


@pytest.fixture
def marks(world: MeshWorld, client: "DynamoDBClient", monkeypatch: pytest.MonkeyPatch) -> "DynamoDBClient":
    empty_table(client, "hops")
    monkeypatch.setattr(clients, "dynamodb", lambda: client)
    return client


@pytest.mark.rule("4.deduplicate")
@pytest.mark.usefixtures("marks")
def test_4_two_copies_in_one_batch_run_once(world: MeshWorld) -> None:
    calls: list[Any] = []
    bodies = [message(), message(id="env-2"), message()]
    assert run(world, counting(calls), *bodies, deduplicate=True, frames="buffered") == []
    assert len(calls) == 2
    world.sqs.refuse_always["asya-shop-post"] = Refusal()
    again = message(id="env-3")
    assert run(world, counting(calls), again, again, deduplicate=True, frames="buffered") == ["message-0"]


@pytest.mark.rule("4.copies-in-a-batch", "4.deduplicate")
@pytest.mark.usefixtures("marks")
def test_4_a_copy_of_a_message_that_failed_does_not_mark_its_hop(world: MeshWorld) -> None:
    """Both copies have one id, so the mark of the dropped one would end the envelope of the other, which has sent nothing."""
    calls: list[Any] = []
    event = sqs_event(message(), message())
    event["Records"][1]["messageId"] = "message-0"
    world.s3.fails = lambda action, key: action == "put"
    sidecar = build_sidecar(world.light(counting(calls), deduplicate=True, frames="buffered"))
    assert batch_failures(sidecar.process(event)) == ["message-0"]
    world.s3.fails = lambda action, key: False
    assert run(world, counting(calls), message(), deduplicate=True, frames="buffered") == []
    assert "post" in world.targets


@pytest.mark.rule("4.deduplicate")
@pytest.mark.usefixtures("marks")
def test_4_a_hop_that_was_completed_is_dropped(world: MeshWorld) -> None:
    assert run(world, echo, message(), deduplicate=True) == []
    assert run(world, never, message(), deduplicate=True) == []
    assert world.targets == ["post"]
    assert world.gateway.reported("env-1") == ["received", "processing", "completed"]


@pytest.mark.rule("4.deduplicate")
@pytest.mark.usefixtures("marks")
def test_4_the_mark_comes_after_the_sends(world: MeshWorld) -> None:
    world.sqs.refuse["asya-shop-post"] = [Refusal(code="X", sender_fault=True)]
    assert run(world, echo, message(), deduplicate=True) == ["message-0"]
    assert run(world, echo, message(), deduplicate=True) == []
    assert world.targets == ["post"]


@pytest.mark.rule("4.attempts")
@pytest.mark.usefixtures("marks")
def test_4_a_retry_is_another_attempt_and_runs(world: MeshWorld) -> None:
    def boom(_: Any) -> Any:
        raise ValueError

    assert run(world, boom, message(), deduplicate=True, resiliency=RETRIED) == []
    (again,) = world.messages("infer")
    assert run(world, never, message(), deduplicate=True, resiliency=RETRIED) == []  # the first attempt, once more
    assert run(world, echo, again.body, deduplicate=True, resiliency=RETRIED) == []
    assert run(world, never, again.body, deduplicate=True, resiliency=RETRIED) == []
    assert world.targets == ["infer", "post"]


@pytest.mark.rule("12.generation")
@pytest.mark.usefixtures("marks")
def test_4_another_position_or_generation_is_another_hop(world: MeshWorld) -> None:
    again = {"prev": ["prep", "infer"], "curr": "infer", "next": ["post"]}
    bodies = [message(), message(route=again), message(headers={"x-asya-generation": 1}), message(id="env-2")]
    assert run(world, echo, *bodies, deduplicate=True) == []
    assert len(world.sent("post")) == 4


class Refusing:
    """A table that can be read, or not even that."""

    def __init__(self, *, readable: bool) -> None:
        self.readable = readable

    def get_item(self, **_: Any) -> Any:
        if not self.readable:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "GetItem")
        return {}

    def put_item(self, **_: Any) -> Any:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "PutItem")


def test_4_what_cannot_be_known_keeps_the_message(world: MeshWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "dynamodb", lambda: Refusing(readable=False))
    assert run(world, never, message(), deduplicate=True) == ["message-0"]


def test_4_a_mark_that_cannot_be_written_does_not_do_it_all_again(
    world: MeshWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "dynamodb", lambda: Refusing(readable=True))
    assert run(world, echo, message(), deduplicate=True) == []
    assert world.targets == ["post"]


# --- keep_input


@pytest.mark.rule("12.keep_input")
def test_12_inputs_are_kept_below_id_generation_and_position(world: MeshWorld) -> None:
    def mutate(payload: Any) -> Any:
        payload["text"] = "changed"
        return payload

    assert run(world, mutate, message(), options={KEEP_INPUT.key: True}) == []
    assert world.s3.keys() == ["hops/env-1/0/1.infer.json"]
    assert json.loads(world.s3.content("hops/env-1/0/1.infer.json"))["payload"] == {"text": "hello"}


def test_12_an_input_that_cannot_be_kept_keeps_the_message(world: MeshWorld) -> None:
    world.s3.fails = lambda action, key: key.startswith("hops/")
    assert run(world, never, message(), options={KEEP_INPUT.key: True}) == ["message-0"]


def test_12_what_does_not_reach_the_handler_is_not_kept(world: MeshWorld) -> None:
    late = message(status=status(deadline_at="2020-01-01T00:00:00Z"))
    assert run(world, never, late, options={KEEP_INPUT.key: True}) == []
    assert world.s3.keys("hops/") == []


# --- handler_mode


@pytest.mark.rule("6.envelope-mode")
def test_6_in_envelope_mode_the_handler_advances_the_route(world: MeshWorld) -> None:
    def handler(envelope: Any) -> Any:
        route = {"prev": [*envelope["route"]["prev"], "infer"], "curr": "rescue", "next": ["post"]}
        return envelope | {"route": route, "payload": envelope["id"]}

    assert run(world, handler, message(), handler_mode="envelope") == []
    (onward,) = world.sent("rescue")
    assert (onward.route.prev, onward.route.next) == (("prep", "infer"), ("post",))
    assert bytes(onward.payload) == b'"env-1"'


@pytest.mark.rule("14.envelope-v1")
def test_14_in_legacy_mode_the_handler_sees_actors_and_current(world: MeshWorld) -> None:
    def handler(envelope: Any) -> Any:
        envelope["route"]["current"] += 1
        return envelope

    assert run(world, handler, message(), handler_mode="envelope-v1") == []
    assert world.targets == ["post"]


@pytest.mark.rule("6.envelope-mode")
def test_6_an_envelope_that_was_not_advanced_fails(world: MeshWorld) -> None:
    assert run(world, echo, message(), handler_mode="envelope") == []
    (failed,) = world.sent("x-sink")
    assert failed.status is not None
    assert failed.status.error is not None
    assert failed.status.error.message.startswith("route.prev must be ['prep', 'infer']")
