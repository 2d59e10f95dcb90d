"""protocol §5: each payload behind a claim check is fetched at its message's turn."""

from typing import Any

import pytest

from asya.ends.lambdas.wiring import build_end_actor, build_sink
from asya.light.lambdas.sidecar import build_sidecar
from asya.tasks.task_state import TaskState
from tests.doubles.envelopes import status
from tests.doubles.large_payloads import LargePayloads, payload_key, peak_of
from tests.doubles.light_actor import LONG_AGO, echo, never
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

KIB = 1024
MIB = 1024 * KIB


@pytest.fixture
def payloads(world: MeshWorld) -> LargePayloads:
    world.s3 = LargePayloads(size=2 * MIB)
    return world.s3


@pytest.mark.rule("5.payloads")
def test_5_a_payload_is_fetched_after_the_frames_of_the_message_before(
    world: MeshWorld, payloads: LargePayloads
) -> None:
    seen: list[str] = []
    payloads.fetched = lambda number: seen.append(f"fetch {number}")
    world.state_reads.watch = lambda: seen.append("states")

    def handler(payload: str) -> None:
        seen.append(f"handle {'abc'.index(payload[0])}")

    assert batch_failures(build_sidecar(world.light(handler)).process(sqs_event(*payloads.messages(3)))) == []
    assert seen == ["states", *(f"{step} {number}" for number in range(3) for step in ("fetch", "handle"))]


@pytest.mark.rule("5.payloads")
@pytest.mark.parametrize(
    ("outcome", "deduplicate", "size"),
    [
        *((outcome, False, 2 * MIB) for outcome in ("frame", "no frame", "failure", "no queue")),
        ("frame", True, 2 * MIB),
        pytest.param("frame", False, 20 * MIB, marks=pytest.mark.slow),
    ],
)
def test_5_a_batch_needs_the_memory_of_one_envelope(
    world: MeshWorld, payloads: LargePayloads, outcome: str, deduplicate: bool, size: int
) -> None:
    payloads.size = size
    if outcome == "no queue":
        payloads.fails = lambda action, key: action == "put"

    def handler(payload: str) -> str | None:
        if outcome == "failure":
            raise ValueError("no")
        return None if outcome == "no frame" else payload

    actor = build_sidecar(world.light(handler, deduplicate=deduplicate))
    kept = [f"message-{number}" for number in range(10)] if outcome != "no frame" else []
    warm_up, one, ten = (
        sqs_event(*payloads.messages(count, first=first)) for first, count in ((0, 1), (1, 1), (2, 10))
    )
    actor.process(warm_up)
    alone = peak_of(lambda: actor.process(one))
    answer: dict[str, Any] = {}
    together = peak_of(lambda: answer.update(actor.process(ten)))
    assert batch_failures(answer) == (kept if outcome == "no queue" else [])
    assert alone > size
    assert together < alone + size


@pytest.mark.rule("5.payloads")
def test_5_a_stopped_envelope_leaves_with_its_reference(world: MeshWorld, payloads: LargePayloads) -> None:
    world.states["env-1"] = TaskState(id="env-1", status="canceled")
    late = payloads.messages(1, status=status(deadline_at=LONG_AGO))
    canceled = payloads.messages(1, first=1)
    astray = payloads.messages(1, first=2, route={"prev": [], "curr": "post", "next": []})
    actor = build_sidecar(world.light(never))
    assert batch_failures(actor.process(sqs_event(*late, *canceled, *astray))) == []
    assert payloads.calls == []
    ended = {envelope.id: envelope for envelope in (*world.sent("x-sink"), *world.sent("x-sump"))}
    assert [ended[f"env-{number}"].header("x-asya-payload-ref")["key"] for number in range(3)] == [  # type: ignore[index]
        payload_key(number) for number in range(3)
    ]


@pytest.mark.rule("4.claim-check.trouble")
def test_5_a_payload_that_s3_refuses_keeps_its_own_message(world: MeshWorld, payloads: LargePayloads) -> None:
    payloads.fails = lambda action, key: key == payload_key(1)
    actor = build_sidecar(world.light(lambda payload: payload[0]))
    assert batch_failures(actor.process(sqs_event(*payloads.messages(3)))) == ["message-1"]
    assert sorted(envelope.id for envelope in world.sent("post")) == ["env-0", "env-2"]


@pytest.mark.rule("4.claim-check.bad-reference", "5.1.payload")
def test_5_a_task_is_registered_before_its_payload_turns_out_to_be_missing(world: MeshWorld) -> None:
    missing = LargePayloads(size=10).messages(1, status=...)
    outside = {"x-asya-payload-ref": {"key": "elsewhere/1", "size": 1, "sha256": ""}}
    malformed = LargePayloads(size=10).messages(1, first=1, status=..., headers=outside)
    actor = build_sidecar(world.light(never))
    assert batch_failures(actor.process(sqs_event(*missing, *malformed))) == []
    reasons = {envelope.id: envelope.status.reason for envelope in world.sent("x-sump") if envelope.status}
    assert reasons == {"env-0": "ParseError", "env-1": "ParseError"}
    at_hop, unknown = world.sent("x-sump")
    assert (at_hop.route.curr, at_hop.status and at_hop.status.actor, unknown.route.curr) == (
        "infer",
        "infer",
        "x-sump",
    )
    assert at_hop.header("x-asya-payload-ref")["key"] == payload_key(0)  # type: ignore[index]
    assert [event.id for event in world.gateway.events if event.status == "registered"] == ["env-0"]


@pytest.mark.rule("5.payloads")
@pytest.mark.parametrize("end", ["x-sink", "end actor"])
def test_5_end_actors_need_the_memory_of_one_envelope(world: MeshWorld, payloads: LargePayloads, end: str) -> None:
    if end == "x-sink":
        actor: Any = build_sink(world.services("x-sink"))
    else:
        actor = build_end_actor(world.light(echo, kind="end", handler_mode="envelope", validate=False))
    one, ten = (sqs_event(*payloads.messages(count)) for count in (1, 10))
    actor.process(one)
    alone = peak_of(lambda: actor.process(one))
    together = peak_of(lambda: actor.process(ten))
    assert alone > payloads.size
    assert together < alone + payloads.size
