"""protocol §11, x-sump: reports, counts, logs and stores every failed envelope."""

import json
from typing import Any

import pytest
from msgspec import Raw

from asya.ends.lambdas.wiring import build_sink, build_sump
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.mesh_table import Sink
from asya.testing.services.queues import Refusal
from tests.doubles.envelopes import mesh, message, status
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

ERROR = {"type": "ValueError", "message": "bad", "mro": [], "traceback": ""}
FAILED = status(phase="failed", reason="Timeout", attempt=2, error=ERROR)


def run(world: MeshWorld, *bodies: bytes | str, reporting: bool = True, index: bool = False) -> list[str]:
    actor = build_sump(world.services("x-sump", mesh(sink=Sink(index=index)), reporting=reporting))
    return batch_failures(actor.process(sqs_event(*bodies)))


def log_lines(caplog: pytest.LogCaptureFixture, text: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.getMessage() == text and record.levelname == "ERROR"]


@pytest.mark.rule("11.sump")
def test_a_failure_is_reported_logged_once_and_kept(world: MeshWorld, caplog: pytest.LogCaptureFixture) -> None:
    assert run(world, message(status=FAILED, payload={"big": "x" * 5000})) == []
    (event,) = world.gateway.events
    assert (event.status, event.data.reason, event.attempt) == ("failed", "Timeout", 2)
    assert json.loads(world.s3.content("results/sump/env-1.json"))["id"] == "env-1"
    (line,) = log_lines(caplog, "envelope failed")
    assert (line["envelope_id"], line["reason"], line["error_type"]) == ("env-1", "Timeout", "ValueError")
    assert len(line["payload"]) <= 2048 < line["payload_bytes"]


@pytest.mark.rule("5.must-arrive")
@pytest.mark.parametrize("is_kept", [False, True])
def test_the_report_must_arrive(world: MeshWorld, is_kept: bool) -> None:
    if is_kept:
        world.sqs.refuse_always["asya-shop-x-ends"] = Refusal("call")
    assert run(world, message(status=FAILED)) == (["message-0"] if is_kept else [])


def test_a_copy_that_cannot_be_written_keeps_the_message(world: MeshWorld) -> None:
    world.s3.fails = lambda action, key: action == "put"
    assert run(world, message(status=FAILED)) == ["message-0"]
    assert world.gateway.reported("env-1") == ["failed"]


@pytest.mark.rule("11.sump.unreadable")
@pytest.mark.parametrize("body", ["junk", "\ud800", '{"id":5}'])
def test_what_cannot_be_parsed_is_logged_kept_as_it_is_and_acked(
    world: MeshWorld, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert run(world, body) == []
    assert world.s3.content("results/sump/unreadable/message-0") == body.encode("utf-8", "surrogatepass")
    assert len(log_lines(caplog, "unreadable message")) == 1
    assert world.targets == []


def test_what_somebody_sent_here_by_hand_failed_here(world: MeshWorld) -> None:
    assert run(world, message(status=...), message(id="env-2")) == []
    assert [event.status for event in world.gateway.events] == ["failed", "failed"]
    assert world.gateway.events[0].data.error is not None
    assert "sent to x-sump without saying why" in world.gateway.events[0].data.error.message


def test_a_stealth_envelope_is_kept_but_not_reported(world: MeshWorld) -> None:
    assert run(world, message(status=FAILED, headers={"x-asya-mesh-status": "off"})) == []
    assert world.gateway.events == []
    assert world.s3.keys("results/sump/") == ["results/sump/env-1.json"]


@pytest.mark.rule("11.index")
@pytest.mark.parametrize("reporting", [True, False])
def test_what_failed_is_in_the_index_of_results_by_its_copy_here(world: MeshWorld, reporting: bool) -> None:
    assert run(world, message(status=FAILED), index=True, reporting=reporting) == []
    rows = [bytes(event.row) for event in world.gateway.events if isinstance(event.row, Raw)]
    rows += [world.s3.content(key) for key in world.s3.keys("results/index/recent/")]
    (row,) = map(json.loads, rows)
    assert (row["id"], row["reason"], row["error_type"]) == ("env-1", "Timeout", "ValueError")
    assert (row["recorded_by"], row["result_uri"].rpartition("/results/")[2]) == ("x-sump", "sump/env-1.json")


def test_the_copy_tells_whose_it_is(world: MeshWorld) -> None:
    run(world, message(status=FAILED))
    (metadata,) = world.s3.metadata.values()
    assert (metadata["id"], metadata["phase"], metadata["namespace"]) == ("env-1", "failed", "shop")


def end_as(world: MeshWorld, phase: str, **members: Any) -> None:
    """The envelope ends at x-sink."""
    body = message(**({"status": status(phase=phase), "route": {"prev": ["infer"], "curr": "", "next": []}} | members))
    build_sink(world.services("x-sink", mesh())).process(sqs_event(body))


@pytest.mark.rule("11.sink.failed-child")
def test_a_refused_failure_ends_here_as_a_failed_child(world: MeshWorld) -> None:
    end_as(world, "succeeded")
    fan_in = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": 1, "slice_count": 2}
    late = message(status=FAILED, headers={"x-asya-fan-in": fan_in | {"aggregation_key": "/r"}})
    for _ in range(2):
        assert run(world, late) == []
    child = ids.child_id("env-1", 0, 1, "error")
    assert world.s3.keys("results/sump/") == [f"results/sump/{child}.json"]
    kept = decode(world.s3.content(f"results/sump/{child}.json"))
    assert (kept.id, kept.parent_id, kept.headers.keys()) == (child, "env-1", {"x-asya-root"})
    assert [(each.id, each.parent_id, each.data.reason) for each in world.gateway.events[1:]] == [
        (child, "env-1", "Timeout")
    ] * 2
    assert world.targets == []


@pytest.mark.rule("11.sink.superseded")
def test_a_failure_of_an_earlier_generation_is_kept(world: MeshWorld) -> None:
    end_as(world, "succeeded", headers={"x-asya-generation": 1})
    assert run(world, message(status=FAILED)) == []
    (key,) = world.s3.keys("results/superseded/")
    assert key.startswith("results/superseded/env-1/0/1-failed-")
    assert world.s3.keys("results/sump/") == []
    assert world.gateway.reported("env-1") == ["succeeded"]


@pytest.mark.rule("11.sink.first-object")
def test_the_first_copy_of_a_failure_stays_and_is_what_is_reported(world: MeshWorld) -> None:
    assert run(world, message(status=FAILED)) == []
    other = FAILED | {"reason": "RuntimeCrash"}
    assert run(world, message(status=other)) == []
    assert [event.data.reason for event in world.gateway.events] == ["Timeout", "Timeout"]
    assert run(world, message(status=other, headers={"x-asya-generation": 1})) == []
    stored = decode(world.s3.content("results/sump/env-1.json"))
    assert (stored.generation, stored.status and stored.status.reason) == (1, "RuntimeCrash")


@pytest.mark.rule("11.sink.moved-object")
def test_a_copy_moves_if_a_redrive_has_ended_meanwhile(world: MeshWorld) -> None:
    def redrive(action: str, key: str) -> bool:
        if (action, key) == ("put", "results/sump/env-1.json"):
            world.s3.fails = lambda *_: False
            end_as(world, "succeeded", headers={"x-asya-generation": 1})
        return False

    world.s3.fails = redrive
    assert run(world, message(status=FAILED)) == []
    assert world.s3.keys("results/sump/") == []
    assert len(world.s3.keys("results/superseded/env-1/0/")) == 1
    assert world.gateway.reported("env-1") == ["succeeded"]


@pytest.mark.rule("11.sink.moved-object")
def test_a_copy_that_was_left_behind_moves_when_its_message_comes_again(world: MeshWorld) -> None:
    def die(action: str, key: str) -> bool:
        if (action, key) == ("put", "results/sump/env-1.json"):
            world.s3.fails = lambda *_: False
            end_as(world, "succeeded", headers={"x-asya-generation": 1})
            world.s3.fails = lambda action, key: "superseded/" in key
        return False

    world.s3.fails = die
    assert run(world, message(status=FAILED)) == ["message-0"]
    assert world.s3.keys("results/sump/") == ["results/sump/env-1.json"]
    world.s3.fails = lambda *_: False
    assert run(world, message(status=FAILED)) == []
    assert world.s3.keys("results/sump/") == []
    assert len(world.s3.keys("results/superseded/env-1/0/")) == 1
    assert world.s3.keys("results/succeeded/") == ["results/succeeded/env-1.json"]


@pytest.mark.rule("11.sump.payload")
def test_a_failure_counts_though_its_payload_is_missing(world: MeshWorld) -> None:
    reference = {"key": "payloads/ab/gone.json", "size": 2, "sha256": "0" * 64}
    failed = status(phase="failed", reason="RouteMismatch", error={"type": "RouteMismatch", "message": "astray"})
    body = message(payload=None, headers={"x-asya-payload-ref": reference}, status=failed)
    answer = build_sump(world.services("x-sump")).process(sqs_event(body))
    assert batch_failures(answer) == []
    assert world.gateway.reported("env-1") == ["failed"]
    stored = decode(world.s3.content("results/sump/env-1.json"))
    assert stored.header("x-asya-payload-ref") == reference
