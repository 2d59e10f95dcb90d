"""protocol §12, replay: its possible starts, and the new task."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.dead_letters import replay
from asya.capabilities.dead_letters.kept_inputs import KeptInput, KeptInputs
from asya.capabilities.dead_letters.replay import ReplayRequest, ReplayStart, Sources
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope
from asya.protocol.keys import InputName
from asya.protocol.mesh_table import Actor
from asya.protocol.times import format_time, parse_time
from asya.tasks.view import TaskView
from tests.doubles.envelopes import NOW, SPAN, mesh, message, status
from tests.doubles.times import TIMES

START = ReplayStart("new-1", NOW, "https://gateway", SPAN)
MESH = mesh(
    {
        "x-fan-in": Actor(kind="fan_in"),
        "old": Actor(kind="handler", options={"failed_payload": "wrapped"}),
        "x-checkpoint": Actor(kind="crew"),
    }
)
SLICE = {"actor": "x-fan-in", "set_id": "s", "origin_id": "origin", "slice_count": 3, "aggregation_key": "/r"}


def replay_envelope(**members: Any) -> Envelope:
    return replay.replay_envelope(decode(message(**members)), MESH, START)


def view(state: Any = "failed", reason: str | None = None) -> TaskView:
    return TaskView(
        id="env-1",
        status=state,
        reason=reason,
        progress_percent=5,
        created_at="a",
        updated_at="a",
        generation=0,
    )


@pytest.mark.rule("3.replay-of", "12.replay")
def test_it_is_a_new_task_on_the_same_route_with_the_same_payload() -> None:
    headers = {
        "tenant": "acme",
        "x-asya-route-override": {"post": "rescue"},
        "x-asya-generation": 3,
        "x-asya-root": "root",
        "x-asya-first-attempt": "2026-11-20T11:00:00Z",
        "traceparent": "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01",
        "x-asya-gateway-url": "https://elsewhere",
    }
    new = replay_envelope(
        headers=headers, parent_id="parent", status=status(phase="failed", reason="Timeout", attempt=4)
    )
    old = decode(message())
    assert (new.id, new.parent_id, new.route, new.payload) == ("new-1", None, old.route, old.payload)
    assert new.header("x-asya-replay-of") == "env-1"
    assert (new.header("tenant"), new.header("x-asya-route-override")) == ("acme", {"post": "rescue"})
    assert (new.header("x-asya-gateway-url"), new.generation, new.root_id) == ("https://gateway", 0, None)
    assert "x-asya-first-attempt" not in new.headers
    assert "aaaa" not in str(new.header("traceparent"))
    assert new.status is not None
    assert (new.status.phase, new.status.actor, new.status.attempt) == ("pending", "infer", 1)
    assert (new.status.created_at, new.status.deadline_at, new.status.error) == (format_time(NOW), None, None)


@pytest.mark.rule("12.replay")
def test_its_deadline_is_as_far_off_as_that_of_the_old_one_was() -> None:
    new = replay_envelope(status=status(created_at="2026-11-20T10:00:00Z", deadline_at="2026-11-20T10:05:00Z"))
    assert new.status is not None
    assert new.status.deadline_at == "2026-11-20T12:05:00.250000Z"


@pytest.mark.rule("12.replay", "2.deadline.longest")
@given(created_at=TIMES, deadline_at=TIMES)
def test_no_times_of_the_old_envelope_keep_it_from_a_replay(created_at: str, deadline_at: str) -> None:
    new = replay_envelope(status=status(created_at=created_at, deadline_at=deadline_at))
    assert new.status is not None
    assert new.status.deadline_at is not None
    assert NOW <= parse_time(new.status.deadline_at) <= NOW + timedelta(days=366)


def test_a_payload_kept_with_its_error_around_it_is_unwrapped() -> None:
    wrapped = {"error": "bad", "details": {}, "original_payload": {"text": "hello"}}
    route = {"prev": [], "curr": "old", "next": []}
    assert (
        bytes(replay_envelope(payload=wrapped, route=route, status=status(phase="failed")).payload)
        == b'{"text":"hello"}'
    )
    # Kept by a hop as its input, or by an actor that did not wrap, it is what was received.
    assert b"original_payload" in bytes(replay_envelope(payload=wrapped, route=route).payload)
    assert b"original_payload" in bytes(replay_envelope(payload=wrapped, status=status(phase="failed")).payload)


def test_what_is_no_wrapper_stays_as_it_is() -> None:
    route = {"prev": [], "curr": "old", "next": []}
    assert bytes(replay_envelope(payload=[1], route=route, status=status(phase="failed")).payload) == b"[1]"


@pytest.mark.rule("12.replay", "3.tool")
def test_hooks_stealth_and_the_task_of_a_tool_stay_what_they_are() -> None:
    new = replay_envelope(headers={"x-asya-hook": "audit", "x-asya-mesh-status": "off", "x-asya-tool": "quote"})
    assert (new.header("x-asya-hook"), new.is_stealth, new.tool) == ("audit", True, "quote")


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"route": {"prev": ["a"], "curr": "", "next": []}}, "route_ended"),
        ({"route": {"prev": [], "curr": "gone", "next": []}}, "unknown_actor"),
        ({"route": {"prev": [], "curr": "x-sump", "next": []}}, "unknown_actor"),
        ({"headers": {"x-asya-fan-in": SLICE | {"slice_index": 1}}}, "slice"),
        ({"headers": {"x-asya-fan-in": 5}}, "slice"),
        ({"route": {"prev": [], "curr": "x-fan-in", "next": []}}, "fan_in"),
    ],
)
def test_where_it_cannot_start_it_is_refused(members: dict[str, Any], code: str) -> None:
    with pytest.raises(ApiError) as refused:
        replay_envelope(**members)
    assert (refused.value.status, refused.value.code) == (409, code)


@pytest.mark.rule("12.slice")
def test_a_slice_is_told_which_origin_to_replay() -> None:
    with pytest.raises(ApiError, match="asya replay origin --failed-only"):
        replay_envelope(headers={"x-asya-fan-in": SLICE | {"slice_index": 1}})


HOPS = KeptInputs(
    {hop: KeptInput(f"hop-{hop}", InputName(0, hop, "infer"), 1) for hop in (0, 2)},
    {3: "such are stored by 'eve'"},
)
FOUND = Sources("result", "sump", {0: "dlq-0", 2: "dlq-2"}, HOPS, {1: "checkpoint-1"})


@pytest.mark.rule("12.replay.where")
@pytest.mark.parametrize(
    ("asked", "task", "found", "expected"),
    [
        (ReplayRequest(), view(), FOUND, "result"),
        (ReplayRequest(), None, FOUND, "result"),
        (ReplayRequest(), view(reason="DeliveryExhausted"), FOUND, "dlq-2"),
        (ReplayRequest(), view(reason="Timeout"), Sources(sump="sump"), "sump"),
        (ReplayRequest(), view(), Sources(dead_letters={3: "dlq-3"}), "dlq-3"),
        (ReplayRequest(hop=2), view("succeeded"), FOUND, "hop-2"),
        (ReplayRequest(checkpoint=1), view("running"), FOUND, "checkpoint-1"),
    ],
)
def test_where_it_starts(asked: ReplayRequest, task: TaskView | None, found: Sources, expected: str) -> None:
    assert replay.choose_source(asked, found, "env-1", task) == expected


@pytest.mark.rule("12.replay.where")
@pytest.mark.parametrize(
    ("asked", "task", "found", "said"),
    [
        (ReplayRequest(hop=1), view(), FOUND, "keep_input.*from where it failed or hop 0, 2 or checkpoint 1"),
        (ReplayRequest(checkpoint=0), view(), Sources(), "no checkpoint .* nothing of it is kept"),
        (
            ReplayRequest(),
            view("succeeded"),
            FOUND,
            "has not failed: its status is succeeded.*from hop 0, 2 or checkpoint 1",
        ),
        (ReplayRequest(), view(), Sources(inputs=HOPS), "no failure of .* is stored.*from hop 0"),
        (ReplayRequest(hop=3), view(), FOUND, "stored by 'eve'.*from where it failed or hop 0, 2 or checkpoint 1"),
    ],
)
def test_otherwise_it_is_refused_listing_what_there_is(
    asked: ReplayRequest, task: TaskView, found: Sources, said: str
) -> None:
    with pytest.raises(ApiError, match=said) as refused:
        replay.choose_source(asked, found, "env-1", task)
    assert (refused.value.status, refused.value.code) == (409, "nothing_to_replay")


def test_of_each_position_the_latest_generation_is_found() -> None:
    keys = ["dlq/e/0/0.json", "dlq/e/0/10.json", "dlq/e/10/2.json", "dlq/e/9/2.json", "dlq/e/x.json", "dlq/e/"]
    assert replay.by_position("dlq/e/", keys) == {
        0: "dlq/e/0/0.json",
        2: "dlq/e/10/2.json",
        10: "dlq/e/0/10.json",
    }
    assert replay.by_position("c/", ["c/3.json", "c/12.json"]) == {3: "c/3.json", 12: "c/12.json"}


def test_folders_are_made_of_safe_segments() -> None:
    assert replay.dead_letters_folder("../x") == "dlq/%2E%2E%2Fx/"
    assert replay.checkpoints_folder("a/b") == "checkpoint/a%2Fb/"
    assert replay.dead_letters_folder("a") == "dlq/a/"


@pytest.mark.parametrize("body", [b'{"hop": 1, "checkpoint": 2}', b'{"hop": -1}', b'{"from": 1}', b"no", b"\xff"])
def test_a_malformed_request_is_refused(body: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        replay.read_replay_request(body)
    assert refused.value.status == 400


@given(st.binary(max_size=40))
def test_no_body_does_anything_worse(body: bytes) -> None:
    with suppress(ApiError):
        replay.read_replay_request(body)
