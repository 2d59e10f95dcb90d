"""Declares what the actors of pauses and waits hear (`asya.senders.statements`)."""

from msgspec.structs import replace

from asya.protocol import names
from asya.senders.envelopes import CONTINUE, CREW, RETRY, START
from asya.senders.statements import Proof, Speaker, Statement

PAUSE = (
    START,
    replace(CONTINUE, name="pause", text="pause a task", shown={Speaker.CODE: Proof.KEY}),
)
WAIT = (*PAUSE, RETRY)
RELEASE = Statement(
    name="release",
    text="end a pause",
    # x-triggers cancels tasks, and sends the release that an earlier answer has left.
    by=(names.GATEWAY_API, names.CLOCK, names.TRIGGERS),
)
RESUME = (*CREW, RELEASE)
