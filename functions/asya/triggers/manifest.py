"""Declares the functions of triggers."""

from asya.manifest import Function, Queues, Requests, with_triggers, with_webhooks
from asya.protocol import names
from asya.starts.idempotency import STARTERS

FUNCTIONS = (
    Function(
        name=names.TRIGGERS,
        entry_point="asya.triggers.lambdas.wiring.triggers",
        called_by=Queues(),
        timeout=STARTERS[names.TRIGGERS],
        exists=with_triggers,
    ),
    Function(
        name=names.WEBHOOKS,
        entry_point="asya.gateway.lambdas.webhooks.webhooks",
        called_by=Requests(),
        timeout=STARTERS[names.GATEWAY_API],
        exists=with_webhooks,
    ),
)
