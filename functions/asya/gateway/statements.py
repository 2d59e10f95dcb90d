"""Declares what the functions of reports and notifications hear (`asya.senders.statements`)."""

from asya.protocol import names
from asya.senders.statements import REDRIVES, Proof, Speaker, Statement

PROGRESS = Statement(
    name="progress",
    text="report about {about}",
    queue=names.REPORTS,
    by=(names.DISPATCH, names.COMPLETION, names.CLOCK, REDRIVES),
    shown={Speaker.SUBJECT: Proof.KEY},
)
END = Statement(
    name="end",
    text="report an end",
    queue=names.ENDS,
    # IAM opens the queue to these alone. Reports wait for days, and a deployment may add or remove their actor.
    by=(
        *(Speaker.PAUSE, Speaker.CONTINUING, Speaker.OTHER_VERSION),
        names.SINK,
        names.SUMP,
        names.CLOCK,
        REDRIVES,
    ),
)
REPORTS = (PROGRESS, END)

# In `asya dev` all functions sign as one, which counts as the gateway.
NOTIFICATION = Statement(name="notification", text="send a notification", by=(names.PUSH_FEED, names.GATEWAY_API))
PUSH = (NOTIFICATION,)
