"""Helpers for tests of outcomes."""

from datetime import timedelta
from typing import Any

from asya.function.hop import Delivery, Hop
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope, Frame
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import Actor, Policy, Resiliency, Rule
from asya.sidecar import outcome
from tests.doubles.envelopes import NOW, raw

LATER = NOW + timedelta(seconds=2)
ERROR = ErrorInfo(type="ValueError", message="bad", mro=("Exception",), traceback="Traceback …")
OUTPUT = Frame(payload=raw({"answer": 42}))
LAST = {"prev": ["prep"], "curr": "infer", "next": []}


def envelope_in(delivery: Delivery) -> Envelope:
    """The envelope in a delivery."""
    return decode(delivery.body)


def resilient(*, rules: tuple[Rule, ...] = (), **policies: Policy) -> Actor:
    """An actor with these retry policies."""
    return Actor(kind="handler", resiliency=Resiliency(policies=policies, rules=rules))


def failed(at: Hop, **more: Any) -> Delivery:
    """The delivery after a handler has failed."""
    known: dict[str, Any] = {"now": LATER, "jitter": 0.0}
    return outcome.failed(at, more.pop("error", ERROR), **(known | more))
