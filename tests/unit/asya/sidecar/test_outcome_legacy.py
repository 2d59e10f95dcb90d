"""protocol §14: `child_ids: suffix` and `failed_payload: wrapped`."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from asya.ends import ending
from asya.function.delivery import Delivery
from asya.function.hop import Hop
from asya.function.targets import TargetError
from asya.heavy import results as job_results
from asya.protocol import headers, ids
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope
from asya.protocol.errors import ErrorInfo
from asya.protocol.frame import Frame
from asya.protocol.job_runs import ResultFrame, ResultHead
from asya.protocol.mesh_table import Actor, Policy, Resiliency, Sink
from asya.sidecar import outcome
from tests.doubles.envelopes import NOW, hop, mesh, message, raw

ID = "9ea72ae8-dc19-8edb-8413-c2d305b0f6da"
SUFFIX = Actor(kind="handler", child_ids="suffix")
WRAPPED = Actor(kind="handler", failed_payload="wrapped")
UUID = Actor(kind="handler")
ERROR = ErrorInfo(type="shop.BadOrder", message="bad", mro=("ValueError", "Exception"), traceback="Traceback …")
ALONE = Frame(raw({}), alone=True)
ONE_OF_MANY = Frame(raw({}))


def at(body: bytes, spec: Actor, actor: str = "infer") -> Hop:
    return hop(body, actor=actor, spec=spec)


def frames(at_hop: Hop, count: int) -> list[Delivery]:
    """What leaves for so many frames of one hop."""
    output = ALONE if count == 1 else ONE_OF_MANY
    return [outcome.frame(at_hop, output, index, now=NOW) for index in range(count)]


def envelopes(deliveries: list[Delivery]) -> list[Envelope]:
    return [decode(delivery.body) for delivery in deliveries]


# --- child_ids: suffix


@pytest.mark.rule("14.child_ids")
def test_14_children_are_numbered_after_the_envelope() -> None:
    own, first, second = envelopes(frames(at(message(id=ID), SUFFIX), 3))
    assert [own.id, first.id, second.id] == [ID, f"{ID}-1", f"{ID}-2"]
    assert [own.parent_id, first.parent_id, second.parent_id] == [None, ID, ID]


@pytest.mark.rule("14.child_ids")
@pytest.mark.parametrize("chosen", ["order-7", "7", f"x{ID}", f"{ID}-0", f"{ID}-a", ID.replace("-", "")])
def test_14_an_id_that_a_sender_chose_gives_uuids(chosen: str) -> None:
    own, child = envelopes(frames(at(message(id=chosen), SUFFIX), 2))
    assert child.id == ids.child_id(chosen, 0, 1, 1)
    assert headers.SUFFIXED_AT not in own.headers


def test_14_a_redelivery_gives_the_same_ids() -> None:
    bodies = [[delivery.body for delivery in frames(at(message(id=ID), SUFFIX), 3)] for _ in range(2)]
    assert bodies[0] == bodies[1]


@pytest.mark.rule("14.child_ids")
def test_14_a_second_fan_out_of_the_same_id_gives_uuids() -> None:
    first = frames(at(message(id=ID), SUFFIX), 2)
    again = at(first[0].body, SUFFIX, "post")
    second = envelopes(frames(again, 2))
    assert [envelope.id for envelope in second] == [ID, ids.child_id(ID, 0, 2, 1)]


def test_14_an_actor_that_gave_one_frame_leaves_the_ids_to_the_next() -> None:
    first = frames(at(message(id=ID), SUFFIX), 1)
    assert headers.SUFFIXED_AT not in envelopes(first)[0].headers
    assert [envelope.id for envelope in envelopes(frames(at(first[0].body, SUFFIX, "post"), 2))] == [ID, f"{ID}-1"]


def test_14_children_have_ids_of_their_own_to_give() -> None:
    child = frames(at(message(id=ID), SUFFIX), 2)[1]
    assert [envelope.id for envelope in envelopes(frames(at(child.body, SUFFIX, "post"), 2))] == [
        f"{ID}-1",
        f"{ID}-1-1",
    ]


def test_14_what_ends_a_streamed_hop_early_is_a_child_with_a_uuid() -> None:
    ended = outcome.failed(at(message(id=ID), SUFFIX), ERROR, now=NOW, jitter=0, frames_sent=2)
    assert decode(ended.body).id == ids.child_id(ID, 0, 1, "error")


def test_14_an_id_that_would_be_too_long_is_a_uuid() -> None:
    long = f"{ID}{'-1' * 110}"
    assert envelopes(frames(at(message(id=long), SUFFIX), 2))[1].id == ids.child_id(long, 0, 1, 1)


def test_14_a_copy_for_a_hook_has_its_own_ids_to_give() -> None:
    last = {"prev": ["prep"], "curr": "infer", "next": []}
    (own, _) = envelopes(frames(at(message(id=ID, route=last), SUFFIX), 2))
    (copy,) = ending.copies(own, Sink(hooks=("rescue",)))
    assert headers.SUFFIXED_AT in own.headers
    assert headers.SUFFIXED_AT not in decode(copy.body).headers


@pytest.mark.rule("14.child_ids")
@given(st.lists(st.tuples(st.sampled_from(["suffix", "uuid"]), st.integers(1, 3)), min_size=1, max_size=4))
def test_14_no_id_is_given_twice_whatever_the_actors_do(hops: list[tuple[str, int]]) -> None:
    route = {"prev": [], "curr": "a0", "next": [f"a{number}" for number in range(1, len(hops))]}
    specs = {f"a{number}": Actor(kind="handler", child_ids=form) for number, (form, _) in enumerate(hops)}  # type: ignore[arg-type]
    under_way, seen = [message(id=ID, route=route)], {ID}
    for number, (_, count) in enumerate(hops):
        name, leaving = f"a{number}", []
        for body in under_way:
            own, *children = frames(replace(at(body, specs[name], name), mesh=mesh(specs)), count)
            new = [decode(child.body).id for child in children]
            assert len(set(new) | seen) == len(new) + len(seen), "an id stands for two envelopes"
            seen |= set(new)
            leaving += [own.body, *(child.body for child in children)]
        under_way = leaving


@pytest.mark.parametrize(("count", "marked"), [(1, False), (2, True)])
def test_14_a_heavy_actor_knows_how_many_there_are(count: int, marked: bool) -> None:
    heavy = Actor(kind="spark", child_ids="suffix")
    results = [ResultFrame(payload=raw({})) for _ in range(count)]
    leaving = job_results.deliveries(
        at(message(id=ID), heavy), ResultHead(index=0, end="done", frames=count), results, now=NOW, jitter=0
    )
    own, *children = envelopes(list(leaving))
    assert (headers.SUFFIXED_AT in own.headers) == marked
    assert [child.id for child in children] == [f"{ID}-1"][: count - 1]


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
        kind="handler", failed_payload="wrapped", resiliency=Resiliency(policies={"default": Policy(max_attempts=2)})
    )
    again = outcome.failed(at(message(), retried), ERROR, now=NOW, jitter=0)
    assert (again.kind, wrapped(again)) == ("retry", {"text": "hello"})
    detour = Actor(
        kind="handler",
        failed_payload="wrapped",
        resiliency=Resiliency(policies={"default": Policy(then_route=("rescue",))}),
    )
    assert wrapped(outcome.failed(at(message(), detour), ERROR, now=NOW, jitter=0)) == {"text": "hello"}
    assert wrapped(outcome.empty(at(message(), WRAPPED), now=NOW)) == {"text": "hello"}


def test_14_without_the_option_nothing_is_wrapped() -> None:
    assert wrapped(outcome.failed(at(message(), UUID), ERROR, now=NOW, jitter=0)) == {"text": "hello"}
