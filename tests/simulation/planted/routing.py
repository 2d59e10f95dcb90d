"""Planted mistakes about routing: status, route, retries, frames and limits."""

import sys
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

import msgspec

from asya.function.hop import Delivery, Hop
from asya.protocol import headers, ids, status
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import NULL, Route
from asya.senders.aws.entry_items import OwnerClaims
from asya.sidecar import arrival, outcome
from tests.simulation.mistake import Mistake, Patch, substitute, wrap
from tests.simulation.planted.replacements import change_headers


def _without_field(name: str) -> Callable[..., Any]:
    """The status that a function makes, without one of its fields."""
    return lambda real, *args, **more: msgspec.structs.replace(real(*args, **more), **{name: None})


def _retry_without_count(real: Any, before: status.Status, **more: Any) -> status.Status:
    counted: status.Status = real(before, **more)
    return msgspec.structs.replace(counted, attempt=before.attempt)


def _shift_twice(real: Any, self: Route, ahead: Any = None) -> Route:
    once: Route = real(self, ahead)
    twice: Route = real(once)
    return twice if once.next else once


def _retry_without_payload(real: Any, *args: Any, **more: Any) -> Delivery:
    delivery: Delivery = real(*args, **more)
    if delivery.kind != "retry":
        return delivery
    envelope = msgspec.structs.replace(decode(delivery.body), payload=NULL)
    return msgspec.structs.replace(delivery, body=encode(envelope))


def _fail_ignoring_frames_sent(real: Any, *args: Any, frames_sent: int = 0, **more: Any) -> Any:
    return real(*args, **more)


def _frame_with_first_attempt(real: Any, hop: Hop, *args: Any, **more: Any) -> Delivery:
    delivery: Delivery = real(hop, *args, **more)
    first = hop.envelope.headers.get(headers.FIRST_ATTEMPT)
    return msgspec.structs.replace(delivery, body=change_headers(delivery.body, {headers.FIRST_ATTEMPT: first}))


def _frame_without_root(real: Any, hop: Hop, *args: Any, **more: Any) -> Delivery:
    delivery: Delivery = real(hop, *args, **more)
    if decode(delivery.body).id == hop.envelope.id:
        return delivery
    return msgspec.structs.replace(delivery, body=change_headers(delivery.body, {headers.ROOT: None}))


def _numbered_child_id(numbers: "count[int]") -> Callable[..., str]:
    return lambda *_: f"child-{next(numbers)}"


def _start_ignoring_state(real: Any, hop: Hop, state: Any, **more: Any) -> Any:
    return real(hop, None, **more)


def _start_ignoring_max_hops(real: Any, hop: Hop, state: Any, **more: Any) -> Any:
    mesh = msgspec.structs.replace(hop.mesh, max_hops=sys.maxsize)
    return real(msgspec.structs.replace(hop, mesh=mesh), state, **more)


def _own_limit(hop: Hop) -> timedelta:
    return timedelta(seconds=hop.spec.timeout)


MISTAKES = (
    Mistake("drops the deadline at routing", wrap(status, "routed", _without_field("deadline_at")), seed=2),
    Mistake("drops created_at at the start of a hop", wrap(status, "started", _without_field("created_at"))),
    Mistake("does not count attempts", wrap(status, "retrying", _retry_without_count)),
    Mistake("shifts twice", wrap(Route, "shifted", _shift_twice)),
    Mistake("retries without the payload", wrap(outcome, "failed", _retry_without_payload), "fault-free", seed=1),
    Mistake("retries after frame 0 was sent", wrap(outcome, "failed", _fail_ignoring_frames_sent), seed=46),
    Mistake(
        "keeps the header of the first attempt after the hop", wrap(outcome, "frame", _frame_with_first_attempt), seed=1
    ),
    Mistake(
        "gives children other ids in each run",
        Patch(ids, "child_id", lambda _: _numbered_child_id(count())),
        seed=10,
    ),
    Mistake(
        "gives numbered ids that others have",
        substitute(OwnerClaims, "claim_numbered", lambda *_: True),
        kind="fault-free",
        seed=12,
        features=frozenset({"numbers"}),
    ),
    Mistake("drops the root of children", wrap(outcome, "frame", _frame_without_root), seed=5),
    Mistake("ignores cancellation", wrap(arrival, "start", _start_ignoring_state), seed=4),
    Mistake(
        "lets handlers run after the deadline",
        substitute(Hop, "time_limit", lambda hop, _: (_own_limit(hop), False)),
        seed=16,
    ),
    Mistake("ignores max_hops", wrap(arrival, "start", _start_ignoring_max_hops)),
)
