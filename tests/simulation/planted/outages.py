"""Planted mistakes about outages and about messages that kill their process (`protocol §4.outage`, `§4.starts`)."""

from typing import Any

from asya.function.aws.outage_notes import OutageNotes
from asya.function.aws.outages import ServiceHealth
from asya.function.lambdas import batch
from asya.function.lambdas.starts import Starts
from asya.protocol.mesh_table import Actor
from tests.simulation.inputs.features import Features
from tests.simulation.mistake import Mistake, found_by, substitute, wrap

_OUTAGES: Features = frozenset({"outages"})


def _begin_without_mark(real: Any, self: Starts, record: Any) -> bool:
    try:
        began: bool = real(self, record)
    except Exception:  # noqa: BLE001 - the mistake
        return True
    return began


MISTAKES = (
    Mistake(
        "lets SQS count an outage",
        substitute(Actor, "queue_receives", property(lambda self: self.max_receives)),
        "fault-free",
        features=_OUTAGES,
    ),
    Mistake("counts an outage as a start", wrap(Starts, "take_back", lambda *_: None), "fault-free", 1, _OUTAGES),
    Mistake(
        "takes an outage for an error of the message",
        substitute(batch, "is_outage", lambda _: False),
        "fault-free",
        seed=1,
        features=_OUTAGES,
    ),
    Mistake("never gives up a message", wrap(Starts, "begin", lambda *_: True), "poison"),
    Mistake("starts without a mark", wrap(Starts, "begin", _begin_without_mark), "poison", features=_OUTAGES),
    Mistake(
        "names no outage",
        (substitute(OutageNotes, "read", lambda _: []), substitute(ServiceHealth, "known", property(lambda _: ()))),
        "fault-free",
        seed=2,
        features=frozenset({"outages", "deadlines"}),
    ),
    found_by(
        "notes no refusal that keeps a message",
        wrap(ServiceHealth, "end_batch", lambda real, self, *, is_kept: real(self, is_kept=False)),
        "unit/asya/function/aws/test_outages_service_health.py::test_4_a_refusal_is_an_outage_if_it_keeps_a_message[AccessDenied]",
    ),
)
