"""Declares what the functions of job runs hear (`asya.senders.statements`)."""

from asya.protocol import names
from asya.senders.envelopes import CREW
from asya.senders.statements import REDRIVES, Proof, Speaker, Statement

ENQUEUE = CREW
REQUEST = Statement(
    name="request",
    text="ask for a job run of {about}",
    by=(Speaker.ITSELF, names.COMPLETION, names.RECONCILE, REDRIVES),
    shown={Speaker.SUBJECT: Proof.ROLE},
)
DISPATCH = (REQUEST,)

RUN_STATE = Statement(
    name="run-state",
    text="tell the state of a job run",
    by=(names.DISPATCH, names.RECONCILE, Speaker.ITSELF, REDRIVES),
    shown={Speaker.OUTSIDE: Proof.SERVICE},
)
COMMIT = Statement(
    name="commit",
    text="tell that a job has written its results",
    by=(REDRIVES,),
    shown={Speaker.OUTSIDE: Proof.SERVICE},
)
WATCH = Statement(name="watch", text="ask for the progress of a job run", by=(Speaker.ITSELF, REDRIVES))
CANCELED = Statement(
    name="stop-runs",
    text="stop the job runs of a canceled task",
    by=(names.GATEWAY_API, names.TRIGGERS, Speaker.ITSELF),
)
COMPLETION = (RUN_STATE, COMMIT, WATCH, CANCELED)
