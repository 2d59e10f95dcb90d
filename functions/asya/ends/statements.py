"""Declares what the actors hear that end envelopes or keep checkpoints (`asya.senders.statements`)."""

from asya.protocol import names
from asya.senders.envelopes import CREW
from asya.senders.statements import REDRIVES, Proof, Speaker, Statement

_ENDED_BY = (
    *(Speaker.HEAVY, Speaker.PAUSE, Speaker.CONTINUING, Speaker.ITSELF),
    *(names.CHECKPOINT, names.RESUME, names.SINK, names.DISPATCH, names.COMPLETION, names.CLOCK, REDRIVES),
)

END = Statement(
    name="end",
    text="end a task",
    by=(*_ENDED_BY, names.TRIGGERS),
    shown={Speaker.CODE: Proof.KEY},
)
FAILED_END = Statement(
    name="failed-end",
    text="end a task as failed",
    by=_ENDED_BY,
    shown={Speaker.CODE: Proof.KEY},
)

SINK = (END,)
SUMP = (FAILED_END,)
CHECKPOINT = CREW
