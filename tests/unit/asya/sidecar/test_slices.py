"""protocol §9: the frames of a slice's actor, and the notification of sets when a slice ends elsewhere."""

from typing import Any

import pytest
from msgspec import Raw

from asya.function.hop import Hop
from asya.function.targets import TargetError
from asya.protocol.codec import decode
from asya.protocol.envelope import Frame
from asya.protocol.mesh_table import Actor, FanIn
from asya.protocol.slices import SliceEnded, decode_message
from asya.sidecar import slices
from tests.doubles.envelopes import hop, mesh, message, raw, status

FAN_IN = Actor(kind="fan_in", fan_in=FanIn())
TABLE = mesh({"x-fan-in": FAN_IN, "gather": FAN_IN})
ERROR = {"type": "ValueError", "message": "bad", "mro": [], "traceback": ""}


def header(**changes: Any) -> dict[str, Any]:
    known = {
        "actor": "x-fan-in",
        "set_id": "s",
        "origin_id": "o",
        "slice_index": 1,
        "slice_count": 3,
        "aggregation_key": "/results",
    }
    return known | changes


def ended(
    phase: str = "failed", slice_header: Any = None, headers: dict[str, Any] | None = None
) -> list[tuple[str, SliceEnded]]:
    envelope = decode(
        message(
            headers={"x-asya-fan-in": slice_header or header(), **(headers or {})},
            status=status(phase=phase, reason="RuntimeError", error=ERROR),
        )
    )
    found = []
    for delivery in slices.slice_end_deliveries(TABLE, envelope):
        told = decode_message(delivery.body)
        assert isinstance(told, SliceEnded)
        found.append((delivery.actor, told))
    return found


@pytest.mark.rule("9.slice-ended")
def test_the_set_of_a_slice_is_told_how_it_ended() -> None:
    ((actor, told),) = ended()
    assert actor == "x-fan-in"
    assert (told.set_id, told.slice_index, told.slice_count, told.phase, told.reason) == (
        "s",
        1,
        3,
        "failed",
        "RuntimeError",
    )
    assert told.error is not None
    assert told.error.message == "bad"


@pytest.mark.rule("9.slice-ended")
def test_success_at_x_sink_is_an_end_without_a_result_and_a_pause_is_no_end() -> None:
    assert [told.phase for _, told in ended("succeeded")] == ["succeeded"]
    assert [told.phase for _, told in ended("canceled")] == ["canceled"]
    assert ended("paused") == []
    assert ended("pending") == []


def test_what_is_no_slice_tells_nobody() -> None:
    assert slices.slice_end_deliveries(TABLE, decode(message(status=status(phase="failed")))) == ()
    assert ended(slice_header={"actor": 5}) == []
    assert ended(slice_header=header(actor="infer")) == []  # no fan-in actor
    assert ended(slice_header=header(actor="elsewhere")) == []


def test_an_origin_tells_its_own_set_and_the_one_it_is_a_slice_of_itself() -> None:
    outer = header(set_id="outer", actor="gather", slice_index=2)
    told = ended(slice_header=header(slice_index=0, outer=outer))
    assert [(actor, message.set_id, message.slice_index) for actor, message in told] == [
        ("x-fan-in", "s", 0),
        ("gather", "outer", 2),
    ]


def test_an_item_of_a_nested_set_tells_that_set_only() -> None:
    told = ended(slice_header=header(slice_index=1, outer=header(set_id="outer")))
    assert [message.set_id for _, message in told] == ["s"]


def test_an_override_leads_to_the_actor_that_takes_the_fan_ins_place() -> None:
    assert [actor for actor, _ in ended(headers={"x-asya-route-override": {"x-fan-in": "gather"}})] == ["gather"]


# --- at the fan-in actor


def at_fan_in(headers: dict[str, Any]) -> Hop:
    body = message(headers=headers, route={"prev": ["infer"], "curr": "x-fan-in", "next": []})
    return hop(body, actor="x-fan-in", spec=FAN_IN)


def test_a_slice_at_its_fan_in_actor_is_taken() -> None:
    assert slices.require_slice_header(at_fan_in({"x-asya-fan-in": header()})).set_id == "s"


@pytest.mark.rule("9.only-slices")
@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({}, "send slices from fan_out or branches only"),
        ({"x-asya-fan-in": header(actor="infer")}, "belongs to a set of 'infer', but arrived at 'x-fan-in'"),
        ({"x-asya-fan-in": header(slice_index=9)}, "slice_index 9 is not within"),
    ],
)
def test_anything_else_there_is_a_mismatch(headers: dict[str, Any], problem: str) -> None:
    with pytest.raises(TargetError) as caught:
        slices.require_slice_header(at_fan_in(headers))
    assert problem in str(caught.value)


# --- frames


def frame(slice_header: Any = None) -> Frame:
    return Frame(raw({}), headers={"x-asya-fan-in": raw(slice_header)} if slice_header else {})


@pytest.mark.rule("9.one-frame")
def test_a_slices_actor_gives_one_frame() -> None:
    working = hop(message(headers={"x-asya-fan-in": header()}))
    slices.check_frames(working, [])
    slices.check_frames(working, [frame()])
    with pytest.raises(slices.SecondFrameError, match="more than one frame for a slice") as caught:
        slices.check_frames(working, [frame(), frame()])
    assert caught.value.error.type == "processing_error"
    assert slices.must_leave_together(working, frame())


def test_others_give_as_many_as_they_like_and_stream_them() -> None:
    working = hop(message(headers={"x-asya-fan-in": None}))
    slices.check_frames(working, [frame(), frame()])
    assert not slices.must_leave_together(working, frame())


def test_a_set_is_opened_for_a_fan_in_actor_only() -> None:
    working = hop(message(), spec=None)
    opened = [frame(header(slice_index=0)), frame(header())]
    assert slices.must_leave_together(working, opened[0])
    with pytest.raises(TargetError, match="'x-fan-in' is not a fan-in actor of the mesh 'shop'"):
        slices.check_frames(working, opened)
    with pytest.raises(TargetError, match="slice_index"):
        slices.check_frames(working, [frame(header(slice_index=7))])
    removed = Frame(raw({}), headers={"x-asya-fan-in": None})
    assert not removed.opens_set
    assert not Frame(Raw(b"1")).opens_set
