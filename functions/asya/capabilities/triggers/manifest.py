"""Declares the functions of triggers."""

from dataclasses import replace

from asya.capabilities.triggers import statements
from asya.capabilities.triggers.lanes import window_kind
from asya.manifest import Capability, Function, Queues, Requests
from asya.monitoring import KINDS, Alarm, Graph, Metric, Of, Section, Series, Threshold, lines
from asya.needs import EACH, Calls, Group, Items, Resource, lists, reads, sends, uses, writes
from asya.predicates import with_chained_triggers, with_jobs, with_pauses, with_triggers, with_webhooks
from asya.protocol import names
from asya.protocol.keys import INBOX_PREFIX, PAUSES_PREFIX
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import CHILDREN_INDEX, WEBHOOK_ATTRIBUTES
from asya.sidecar.needs import CLAIMS, GIVES_KEYS, GIVES_UP, READS_CLAIMS, READS_ROLES
from asya.tasks.starts.idempotency import STARTERS


def with_schedules(mesh: MeshTable, _name: str) -> bool:
    """With triggers that have a schedule."""
    return any(trigger.schedule is not None for trigger in mesh.triggers.values())


def with_windows(mesh: MeshTable, _name: str) -> bool:
    """With triggers that gather occurrences."""
    return any(window_kind(trigger) is not None for trigger in mesh.triggers.values())


def with_cancels(mesh: MeshTable, _name: str) -> bool:
    """With triggers that cancel the previous task."""
    return any(trigger.overlap == "cancel-previous" for trigger in mesh.triggers.values())


def cancels_jobs(mesh: MeshTable, name: str) -> bool:
    """With triggers that cancel the previous task, and heavy actors."""
    return with_cancels(mesh, name) and with_jobs(mesh, name)


def cancels_pauses(mesh: MeshTable, name: str) -> bool:
    """With triggers that cancel the previous task, and actors that pause tasks."""
    return with_cancels(mesh, name) and with_pauses(mesh, name)


FUNCTIONS = (
    Function(
        name=names.TRIGGERS,
        entry_point="asya.capabilities.triggers.lambdas.wiring.triggers",
        # It only sends first messages, and claims each start by a conditional write.
        called_by=Queues(concurrency=None),
        timeout=STARTERS[names.TRIGGERS],
        exists=with_triggers,
        in_chains=with_chained_triggers,
        hears=statements.TRIGGERS,
        # It writes records, and sends to the first actors of the routes of triggers alone.
        needs=(
            uses("tasks"),
            sends(Group.STARTED),
            GIVES_UP,
            GIVES_KEYS,
            writes(f"{INBOX_PREFIX}{EACH}/*", each=Group.STARTED),
            reads(f"{INBOX_PREFIX}{names.TRIGGERS}/*", when=with_webhooks),
            READS_ROLES,
            # Windows close by messages to the function itself (`protocol §16.window.close`).
            sends(names.TRIGGERS, when=with_windows),
            # A cancellation ends tasks with their ends, children, paused envelopes and job runs.
            Items(table="tasks", calls=("Query",), indexes=(CHILDREN_INDEX,), when=with_cancels),
            replace(CLAIMS, when=with_cancels),
            replace(READS_CLAIMS, when=with_cancels),
            sends(names.COMPLETION, when=cancels_jobs),
            sends(names.RESUME, names.SINK, when=cancels_pauses),
            reads(f"{PAUSES_PREFIX}*", when=cancels_pauses),
            writes(f"{INBOX_PREFIX}{names.RESUME}/*", f"{INBOX_PREFIX}{names.SINK}/*", when=cancels_pauses),
            lists(f"{PAUSES_PREFIX}*", when=cancels_pauses),
        ),
    ),
    Function(
        name=names.WEBHOOKS,
        entry_point="asya.gateway.lambdas.webhooks.webhooks",
        called_by=Requests(),
        timeout=STARTERS[names.GATEWAY_API],
        exists=with_webhooks,
        # Strangers may call it. It reads the keys of webhooks and which tasks exist, and sends to x-triggers.
        needs=(
            Calls(calls=("secretsmanager:GetSecretValue", "ssm:GetParameter"), on=Resource.WEBHOOK_KEYS),
            sends(names.TRIGGERS),
            writes(f"{INBOX_PREFIX}{names.TRIGGERS}/*"),
            Items(table="tasks", calls=("BatchGetItem",), attributes=WEBHOOK_ATTRIBUTES),
        ),
    ),
)

METRICS = (
    Metric("TriggersFired"),
    Metric("TriggersFailed"),
    Metric("TriggersSkipped"),
    Metric("SlotsMissed"),
    Metric("WebhooksTaken"),
    Metric("WebhooksRefused"),
)

ALARMS = (
    Alarm(
        name="slots-missed",
        says="Slots of schedules were later than catch_up, so their tasks do not start. The log {log} names the triggers; "
        "`asya backfill` starts the slots.",
        graph="Failures and missed slots",
        log=names.TASK_SWEEP,
        step="`asya backfill` [starts the slots](../how-to/backfill.md); a longer `catch_up`",
        watched=Series(metric="SlotsMissed"),
        threshold=Threshold(
            key="slots_missed",
            text="Slots of schedules that were later than `catch_up`, so their tasks do not start.",
        ),
        when=with_schedules,
    ),
)

_TRIGGERS = Section("overview", "Triggers", 6, when=with_triggers)

GRAPHS = (
    Graph(section=_TRIGGERS, at=1, title="Starts", lines=lines("TriggersFired", "TriggersSkipped")),
    Graph(section=_TRIGGERS, at=2, title="Failures and missed slots", lines=lines("TriggersFailed", "SlotsMissed")),
    Graph(section=_TRIGGERS, at=3, title="Webhooks", lines=lines("WebhooksTaken", "WebhooksRefused")),
    Graph(
        section=KINDS,
        at=10,
        title="Triggers",
        lines=lines("TriggersFired", "TriggersFailed", "TriggersSkipped", "SlotsMissed", of=Of.PICKED),
    ),
    Graph(section=KINDS, at=11, title="Webhooks", lines=lines("WebhooksTaken", "WebhooksRefused", of=Of.PICKED)),
)

CAPABILITY = Capability(name="triggers", functions=FUNCTIONS, metrics=METRICS, alarms=ALARMS, graphs=GRAPHS)
