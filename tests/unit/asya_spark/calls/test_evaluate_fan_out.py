"""Heavy jobs fan out, and process slices, by the rules of light handlers (`protocol §9`, `§10`)."""

import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec
import pytest

from asya import branches, fan_out
from asya.function.hop import Delivery
from asya.heavy.results import deliveries
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.errors import ErrorInfo
from asya.protocol.headers import MAX_ENCLOSING_SETS
from asya.protocol.job_runs import ResultFrame, ResultHead
from asya.protocol.mesh_table import Actor, FanIn, Policy, Resiliency
from asya_spark.calls.evaluate import ProcessingError, frames
from asya_spark.manifest import Envelope
from tests.doubles.envelopes import NOW, hop, mesh, message
from tests.doubles.nested_sets import nested

FAN_IN = {"x-fan-in": Actor(kind="fan_in", fan_in=FanIn())}
HEADER = {
    "actor": "x-fan-in",
    "set_id": "s",
    "origin_id": "o",
    "slice_index": 1,
    "slice_count": 3,
    "aggregation_key": "/r",
}
ERROR = ErrorInfo(type="ValueError", message="late")
IN_A_SET = {"x-asya-fan-in": HEADER}


def lines(job: Callable[[], Any], headers: dict[str, Any] | None = None) -> list[str]:
    envelope = Envelope("env-1", "", ("prep",), "infer", ("x-fan-in", "post"), headers or {"tenant": "acme"}, {}, None)
    return list(frames(job, envelope))


def deliveries_of(
    frame_lines: list[str],
    headers: dict[str, Any] | None = None,
    *,
    end: Any = "done",
    first: int = 0,
    spec: Actor | None = None,
) -> list[Delivery]:
    """The deliveries of one member whose job gave these lines."""
    route = {"prev": ["prep"], "curr": "infer", "next": ["x-fan-in", "post"]}
    actor = spec or Actor(kind="spark", handler=None)
    started = hop(message(route=route, headers=headers or {}), spec=actor)
    working = msgspec.structs.replace(started, mesh=mesh({**FAN_IN, "infer": actor}))
    head = ResultHead(index=0, end=end, frames=len(frame_lines), error=None if end == "done" else ERROR)
    results = iter([msgspec.json.decode(line, type=ResultFrame) for line in frame_lines])
    return list(deliveries(working, head, results, first=first, now=NOW, jitter=0.0))


def generator() -> Iterator[Any]:
    yield "SET", ".headers.seen", 1
    yield from fan_out([{"a": 1}, None], to=["score"])


async def async_generator() -> AsyncIterator[Any]:
    for frame in fan_out([{"a": 1}, None], to=["score"]):
        yield frame


@pytest.mark.parametrize("job", [generator, async_generator, lambda: fan_out([{"a": 1}, None], to=["score"])])
def test_every_kind_of_job_fans_out(job: Callable[[], Any]) -> None:
    origin, first, second = (json.loads(line) for line in lines(job))
    assert "payload" not in origin  # as it was received
    assert origin["next"] == ["x-fan-in", "post"]
    assert (first["payload"], second["payload"]) == ({"a": 1}, None)
    assert first["next"] == second["next"] == ["score", "x-fan-in"]
    headers = [frame["headers"]["x-asya-fan-in"] for frame in (origin, first, second)]
    assert [header["slice_index"] for header in headers] == [0, 1, 2]
    assert {header["set_id"] for header in headers} == {ids.set_id("env-1", 0, 1)}


@pytest.mark.rule("9.branches")
def test_a_job_branches_with_the_payload_that_it_received() -> None:
    ways = {"stats": ["score"], "raw": []}
    origin, stats, raw = (json.loads(line) for line in lines(lambda: branches(ways, payloads={"raw": None})))
    assert "payload" not in origin
    assert "payload" not in stats  # as it was received
    assert (raw["payload"], stats["next"], raw["next"]) == (None, ["score", "x-fan-in"], ["x-fan-in"])
    assert stats["headers"]["x-asya-fan-in"]["branches"] == ["stats", "raw"]
    _, sent, _ = deliveries_of(lines(lambda: branches({"stats": ["post"], "raw": []}, payloads={"raw": None})))
    assert json.loads(bytes(decode(sent.body).payload)) == {"text": "hello"}


def test_a_fan_out_is_a_jobs_only_output() -> None:
    def job() -> Iterator[Any]:
        yield 1
        yield from fan_out([2], to=["score"])

    with pytest.raises(ProcessingError, match="only output of its hop"):
        lines(job)


@pytest.mark.rule("9.nesting.depth")
def test_a_set_within_too_many_others_does_not_open() -> None:
    def job() -> Any:
        return fan_out([1], to=["score"])

    for depth in range(MAX_ENCLOSING_SETS):
        origin, _ = lines(job, {"x-asya-fan-in": nested(depth, random.Random(depth), ("x-fan-in",))})
        assert "outer" in json.loads(origin)["headers"]["x-asya-fan-in"]
    deepest = nested(MAX_ENCLOSING_SETS, random.Random(0), ("x-fan-in",))
    with pytest.raises(ProcessingError, match="a set has 16 enclosing sets at most"):
        lines(job, {"x-asya-fan-in": deepest})


def test_its_frames_leave_as_those_of_a_light_handler() -> None:
    sent = deliveries_of(lines(lambda: fan_out([{"a": 1}, {"b": 2}], to=["post"])))
    assert [delivery.actor for delivery in sent] == ["x-fan-in", "post", "post"]
    origin, first, second = (decode(delivery.body) for delivery in sent)
    assert json.loads(bytes(origin.payload)) == {"text": "hello"}
    assert [envelope.id for envelope in (origin, first, second)] == [
        "env-1",
        ids.child_id("env-1", 0, 1, 1),
        ids.child_id("env-1", 0, 1, 2),
    ]


def test_a_fan_out_that_leads_nowhere_sends_nothing_of_it() -> None:
    (sunk,) = deliveries_of(lines(lambda: fan_out([1, 2], to=["nobody"])))
    assert (sunk.actor, decode(sunk.body).id) == ("x-sump", "env-1")


def test_a_fan_out_before_an_error_does_not_count() -> None:
    (ended,) = deliveries_of(lines(lambda: fan_out([1, 2], to=["post"])), end="failed")
    assert (ended.actor, decode(ended.body).id) == ("x-sink", "env-1")


def test_a_slices_job_gives_one_frame() -> None:
    one, two = '{"payload":1}', '{"payload":2}'
    assert [delivery.actor for delivery in deliveries_of([one], IN_A_SET)] == ["x-fan-in"]
    (ended,) = deliveries_of([one, two], IN_A_SET)
    status = decode(ended.body).status
    assert ended.actor == "x-sink"
    assert status is not None
    assert status.error is not None
    assert status.error.type == "processing_error"
    assert len(deliveries_of([one, two])) == 2  # outside of sets


def test_a_slices_frame_before_an_error_does_not_leave_and_the_slice_is_tried_again() -> None:
    retried = Actor(kind="spark", resiliency=Resiliency(policies={"default": Policy(max_attempts=2)}))
    (again,) = deliveries_of(['{"payload":1}'], IN_A_SET, end="failed", spec=retried)
    assert (again.kind, decode(again.body).id) == ("retry", "env-1")


def test_routing_may_be_taken_up_again_anywhere() -> None:
    frame_lines = lines(lambda: fan_out([1, 2, 3], to=["post"]))
    whole = deliveries_of(frame_lines)
    for first in range(5):
        assert deliveries_of(frame_lines, first=first) == whole[first:]
    failed = deliveries_of(['{"payload":1}', '{"payload":2}'], IN_A_SET)
    assert deliveries_of(['{"payload":1}', '{"payload":2}'], IN_A_SET, first=1) == failed[1:] == []
