"""Declares what fan-in actors hear (`asya.senders.statements`)."""

from asya.protocol import names
from asya.senders.envelopes import CONTINUED_BY, START
from asya.senders.statements import REDRIVES, Proof, Speaker, Statement

SLICE = Statement(
    name="slice",
    text="add a slice to a set",
    by=CONTINUED_BY,
    shown={Speaker.CODE: Proof.KEY},
)
# The actor itself may not say it: a message that waits until it is due comes back in its name, with any first sender.
REPEAT = Statement(name="repeat", text="repeat a fan-out", by=(names.GATEWAY_API,))
LOST_SLICE = Statement(
    name="lost-slice",
    text="tell a set that a slice has ended without a result",
    by=(names.SINK, names.SUMP, names.CLOCK, REDRIVES),
)
DUE = Statement(
    name="due",
    text="ask whether a set is due",
    by=(Speaker.ITSELF, names.CLOCK, REDRIVES),
)

FAN_IN = (START, SLICE, REPEAT, LOST_SLICE, DUE)
