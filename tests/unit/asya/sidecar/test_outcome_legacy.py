"""protocol §14: `child_ids: suffix` and `failed_payload: wrapped`."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from asya.function.hop import Delivery, Hop
from asya.function.targets import TargetError
from asya.heavy import results as job_results
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope, Frame
from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import ResultFrame, ResultHead
from asya.protocol.mesh_table import Actor, Policy, Resiliency
from asya.sidecar import outcome
from tests.doubles.envelopes import NOW, hop, message, raw

ID = "9ea72ae8-dc19-8edb-8413-c2d305b0f6da"
SUFFIX = Actor(kind="handler", options={"child_ids": "suffix"})
WRAPPED = Actor(kind="handler", options={"failed_payload": "wrapped"})
UUID = Actor(kind="handler")
ERROR = ErrorInfo(type="shop.BadOrder", message="bad", mro=("ValueError", "Exception"), traceback="Traceback …")
ONE_OF_MANY = Frame(raw({}))


def at(body: bytes, spec: Actor = SUFFIX) -> Hop:
    return hop(body, actor="infer", spec=spec)


def frames(at_hop: Hop, count: int, *, numbered: bool = True) -> list[Delivery]:
    """What leaves for so many frames of one hop."""
    return [outcome.frame(at_hop, ONE_OF_MANY, index, now=NOW, numbered=numbered) for index in range(count)]


def envelopes(deliveries: list[Delivery]) -> list[Envelope]:
    return [decode(delivery.body) for delivery in deliveries]


# --- child_ids: suffix


@pytest.mark.rule("14.child_ids")
@pytest.mark.parametrize("envelope_id", ["abc-123", "order-7", ID, f"{ID}-1", "é"])
def test_14_children_are_numbered_after_the_envelope(envelope_id: str) -> None:
    own, first, second = envelopes(frames(at(message(id=envelope_id)), 3))
    assert [own.id, first.id, second.id] == [envelope_id, f"{envelope_id}-1", f"{envelope_id}-2"]
    assert [own.parent_id, first.parent_id, second.parent_id] == [None, envelope_id, envelope_id]


@pytest.mark.rule("14.child_ids")
def test_14_a_hop_without_the_numbered_ids_gives_uuids() -> None:
    assert [envelope.id for envelope in envelopes(frames(at(message(id=ID)), 2, numbered=False))] == [
        ID,
        ids.child_id(ID, 0, 1, 1),
    ]


@pytest.mark.rule("14.child_ids")
def test_14_what_ends_a_streamed_hop_early_is_a_child_with_a_uuid() -> None:
    ended = outcome.failed(at(message(id=ID)), ERROR, now=NOW, jitter=0, frames_sent=2)
    assert decode(ended.body).id == ids.child_id(ID, 0, 1, "error")


@pytest.mark.rule("14.child_ids")
def test_14_an_id_that_would_be_too_long_is_a_uuid() -> None:
    long = f"{ID}{'-1' * 110}"
    assert envelopes(frames(at(message(id=long)), 2))[1].id == ids.child_id(long, 0, 1, 1)


@pytest.mark.rule("14.child_ids")
def test_14_the_children_of_a_heavy_actor_are_numbered() -> None:
    heavy = Actor(kind="spark", options={"child_ids": "suffix"})
    results = [ResultFrame(payload=raw({})) for _ in range(2)]
    head = ResultHead(index=0, end="done", frames=2)
    leaving = job_results.deliveries(at(message(id="a"), heavy), head, results, now=NOW, jitter=0, numbered=True)
    assert [envelope.id for envelope in envelopes([each for each in leaving if each])] == ["a", "a-1"]


# --- failed_payload: wrapped


def wrapped(delivery: Delivery) -> Any:
    return msgspec.json.decode(decode(delivery.body).payload)


@pytest.mark.rule("14.failed_payload")
def test_14_a_failure_leaves_with_its_error_beside_the_payload() -> None:
    leaving = outcome.failed(at(message(), WRAPPED), ERROR, now=NOW, jitter=0)
    assert leaving.actor == "x-sink"
    assert wrapped(leaving) == {
        "error": "bad",
        "details": {"message": "bad", "type": "shop.BadOrder", "traceback": "Traceback …"},
        "original_payload": {"text": "hello"},
    }
    envelope = decode(leaving.body)
    assert envelope.status is not None
    assert envelope.status.error == ERROR


def test_14_a_timeout_has_the_legacy_error_text() -> None:
    leaving = outcome.timed_out(at(message(), WRAPPED), timedelta(minutes=5), by_deadline=False, now=NOW, jitter=0)
    assert leaving.actor == "x-sump"
    assert wrapped(leaving)["error"] == "Runtime timeout exceeded"
    assert wrapped(leaving)["details"]["message"] == "Runtime did not respond within 5m0s"


def test_14_the_original_payload_is_carried_byte_for_byte() -> None:
    odd = '{"n": 1.50, "s" : "ü", "big": 1e999}'.encode()
    body = message(payload=0).replace(b'"payload":0', b'"payload":' + odd)
    for leaving in (
        outcome.failed(at(body, WRAPPED), ERROR, now=NOW, jitter=0),
        outcome.crashed(at(body, WRAPPED), ERROR, now=NOW),
        outcome.unreadable(at(body, WRAPPED), "out of range", now=NOW),
        outcome.mismatch(at(body, WRAPPED), TargetError("nobody"), now=NOW),
        outcome.failed(at(body, WRAPPED), ERROR, now=NOW, jitter=0, frames_sent=1),
    ):
        assert bytes(decode(leaving.body).payload).endswith(b',"original_payload":' + odd + b"}")


@pytest.mark.rule("14.failed_payload")
def test_14_only_what_has_failed_for_good_is_wrapped() -> None:
    retried = Actor(
        kind="handler",
        options={"failed_payload": "wrapped"},
        resiliency=Resiliency(policies={"default": Policy(max_attempts=2)}),
    )
    again = outcome.failed(at(message(), retried), ERROR, now=NOW, jitter=0)
    assert (again.kind, wrapped(again)) == ("retry", {"text": "hello"})
    detour = Actor(
        kind="handler",
        options={"failed_payload": "wrapped"},
        resiliency=Resiliency(policies={"default": Policy(then_route=("rescue",))}),
    )
    assert wrapped(outcome.failed(at(message(), detour), ERROR, now=NOW, jitter=0)) == {"text": "hello"}
    assert wrapped(outcome.empty(at(message(), WRAPPED), now=NOW)) == {"text": "hello"}


def test_14_without_the_option_nothing_is_wrapped() -> None:
    assert wrapped(outcome.failed(at(message(), UUID), ERROR, now=NOW, jitter=0)) == {"text": "hello"}
