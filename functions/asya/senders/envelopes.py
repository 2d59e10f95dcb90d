"""Declares what functions hear that take envelopes along their routes (`asya.senders.statements`)."""

from msgspec.structs import replace

from asya.protocol import names
from asya.senders.statements import REDRIVES, Proof, Speaker, Statement

CONTINUED_BY = (
    *(Speaker.CONTINUING, Speaker.ITSELF),
    # x-sink sends copies to hooks.
    *(names.CHECKPOINT, names.RESUME, names.COMPLETION, names.CLOCK, names.SINK, REDRIVES),
)
"""The functions without code of users that send envelopes on. Those of the crew continue for the actor before them."""

START = Statement(
    name="start",
    text="start a task",
    by=(names.GATEWAY_API, names.TRIGGERS),
    shown={Speaker.OUTSIDE: Proof.CLAIM, Speaker.CODE: Proof.CLAIM},
)
CONTINUE = Statement(
    name="continue",
    text="send a task on",
    by=CONTINUED_BY,
    shown={Speaker.CODE: Proof.EDGE},
)
RETRY = Statement(
    name="retry",
    text="let a retry of {about} wait",
    by=(Speaker.ITSELF, names.COMPLETION, names.CLOCK, REDRIVES),
    shown={Speaker.SUBJECT: Proof.KEY},
)

ACTOR = (START, CONTINUE)
"""What light actors and end actors hear."""
CREW = (START, replace(CONTINUE, shown={Speaker.CODE: Proof.KEY}))
"""What heavy actors hear, and actors of the crew that continue routes. The route needs edges besides (`protocol §1.authority`)."""
