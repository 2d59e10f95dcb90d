"""Declares what x-triggers hears (`asya.senders.statements`).

A message says what it is by its members. Each member that gives a message its form is a statement: a message with the members of
two forms needs the right to both, so it does not matter which of the forms a reader tries first.
"""

from collections.abc import Mapping

from asya.protocol import names
from asya.senders.statements import REDRIVES, Proof, Speaker, Statement

_SERVICE = Statement(
    name="occurrence",
    text="tell about objects and events",
    by=(REDRIVES,),
    shown={Speaker.OUTSIDE: Proof.POLICY},
)
_SLOT = Statement(name="slot", text="tell about a slot of a schedule", by=(names.CLOCK, REDRIVES))
_WEBHOOK = Statement(name="webhook", text="tell about a webhook", by=(names.WEBHOOKS, REDRIVES))
_FIRE = Statement(name="fire", text="start a trigger for an operator", by=(names.GATEWAY_API,))
_BACKFILL = Statement(name="backfill", text="continue a backfill", by=(names.CLOCK, names.GATEWAY_API))
_LANE = Statement(name="lane", text="have a lane looked at", by=(names.CLOCK, Speaker.ITSELF, names.GATEWAY_API))
_END = Statement(name="end", text="tell that a task has ended", by=(names.CLOCK, names.REPORTS, REDRIVES))

FORMS: Mapping[str, Statement] = {
    "Records": _SERVICE,
    "Event": _SERVICE,
    "event": _SERVICE,
    "slot": _SLOT,
    "webhook": _WEBHOOK,
    "fired": _FIRE,
    "backfill": _BACKFILL,
    "lane": _LANE,
    "ended": _END,
}
"""By the member that gives a message its form, what it says."""

TRIGGERS = (_SERVICE, _SLOT, _WEBHOOK, _FIRE, _BACKFILL, _LANE, _END)
