"""Declares the functions that take calls and reports, and that look after tasks."""

from dataclasses import replace

from asya.capabilities.dead_letters.manifest import LETTERS
from asya.ends.results import RECENT_PREFIX
from asya.gateway import statements
from asya.manifest import Capability, Clock, Deployments, Function, Queues, Requests, TableChanges
from asya.monitoring import TASKS, Alarm, Delay, Graph, Line, Metric, Section, Series, Threshold, lines
from asya.needs import (
    Calls,
    Group,
    Items,
    Messages,
    Need,
    Resource,
    lists,
    looks_at,
    reads,
    sends,
    uses,
    writes,
)
from asya.predicates import (
    Predicate,
    always,
    with_callbacks,
    with_chained_triggers,
    with_fan_in,
    with_few_actors,
    with_index,
    with_jobs,
    with_many_actors,
    with_tools,
    with_triggers,
)
from asya.protocol import names
from asya.protocol.job_runs import LOGS_FOLDER, RUNS_PREFIX
from asya.protocol.keys import (
    BUFFERED_PREFIX,
    DEAD_LETTERS_PREFIX,
    INBOX_PREFIX,
    INPUTS_PREFIX,
    PAUSES_PREFIX,
    PAYLOADS_PREFIX,
    REFUSED_REPORTS_PREFIX,
    REPORTS_PREFIX,
)
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import (
    CHILDREN_INDEX,
    DUE_INDEX,
    KEY_PREFIX,
    LISTED_INDEX,
    ROLE_PREFIX,
    SHARE_PREFIX,
    WAITING_INDEX,
)
from asya.sidecar.needs import (
    CHECKS_KEYS,
    CLAIMS,
    JUDGES_SENDERS,
    READS_CLAIMS,
    READS_OUTAGES,
    READS_ROLES,
    SIGNS_TOKENS,
)
from asya.stores import Index, Prefix, Table
from asya.tasks.starts.idempotency import STARTERS

CALL_TIMEOUT = STARTERS[names.GATEWAY_API]
"""Seconds. API Gateway waits for 30; the lease of a start exceeds this time."""

REPORT_RETENTION_DAYS = 14
"""Reports wait as long as SQS keeps messages: an outage of their function or of the tasks table loses none."""

REPORT_RECEIVES = 1000
"""The most that SQS allows. A receive that fails may be as short as the nack of the function that takes reports."""

_PUSH_TIMEOUT = 60


def _without_task_sweep(mesh: MeshTable) -> str:
    return "tasks past their deadline stay open" + (", and schedules start nothing" if mesh.triggers else "")


def _calls(
    name: str,
    entry_point: str,
    *needs: Need,
    changes: bool = True,
    traces: bool = False,
    exists: Predicate = always,
) -> Function:
    """Declare a function that answers calls."""
    return Function(
        name=name,
        entry_point=entry_point,
        called_by=Requests(changes=changes),
        timeout=CALL_TIMEOUT,
        needs=needs,
        exists=exists,
        traces=traces,
    )


_QUERIES_TASKS = Items(table="tasks", calls=("Query",))
_COPIES = tuple(
    f"{prefix}*" for prefix in (INPUTS_PREFIX, DEAD_LETTERS_PREFIX, PAUSES_PREFIX, PAYLOADS_PREFIX, INBOX_PREFIX)
)
_READS_LINES = ("logs:FilterLogEvents",)

FUNCTIONS = (
    _calls(
        names.GATEWAY_API,
        "asya.gateway.lambdas.api.api",
        # It creates, shows, resumes, cancels, replays and redrives tasks (`protocol §4`, `§12`), and records reports of operators.
        uses("tasks"),
        Items(table="tasks", calls=("Query",), indexes=(LISTED_INDEX, CHILDREN_INDEX, DUE_INDEX)),
        # A redrive sends to every queue that has dead letters.
        sends(Group.WATCHED, *names.REPORT_QUEUES),
        writes(f"{INBOX_PREFIX}*"),
        *JUDGES_SENDERS,
        CHECKS_KEYS,
        # A cancellation claims the end of its task. The same read has the notes of outages.
        CLAIMS,
        READS_CLAIMS,
        # A replay may start from any stored copy of an envelope.
        reads(*_COPIES),
        reads("*", store="results"),
        # It finds kept frames, and never reads them.
        lists(*_COPIES, f"{BUFFERED_PREFIX}*"),
        lists("*", store="results"),
        # It checks sets for redrives and replays, and records which fan-out a new set repeats.
        Items(table="fan-in", calls=("GetItem",), when=with_fan_in),
        Items(table="fan-in", calls=("PutItem",), when=with_fan_in),
        replace(SIGNS_TOKENS, when=with_callbacks),
        traces=True,
    ),
    _calls(
        names.GATEWAY_STREAM,
        "asya.gateway.streams.routes.stream",
        # It streams tasks and issues stream tokens.
        _QUERIES_TASKS,
        SIGNS_TOKENS,
    ),
    _calls(
        names.OPERATIONS,
        "asya.gateway.operations.wiring.operations",
        # It reads lines, job runs, dead letters, numbers and failures. It can send and delete no message.
        _QUERIES_TASKS,
        Items(table="tasks", calls=("Query",), indexes=(LISTED_INDEX, DUE_INDEX)),
        Items(table="tasks", calls=("BatchGetItem", "GetItem")),
        Items(table="breaker", calls=("GetItem",)),
        Messages(calls=("GetQueueAttributes",), queues=(Group.ACTORS,)),
        Calls(calls=("cloudwatch:GetMetricData",), on=Resource.METRICS),
        looks_at(Group.DEAD_LETTERS),
        # Which functions read the queues of the mesh, and the reserved concurrency of each: no code, no variable.
        Calls(calls=("lambda:ListEventSourceMappings",), on=Resource.EVENT_SOURCES),
        Calls(calls=("lambda:GetFunctionConcurrency",), on=Resource.FUNCTIONS),
        # What functions have logged. In a mesh of many actors x-logs reads it.
        Calls(calls=_READS_LINES, on=Resource.LOG_GROUPS, when=with_few_actors),
        # The records of job runs, their manifests, results and heartbeats, and the logs that EMR Serverless writes of them.
        Items(table=names.PENDING_TABLE, calls=("GetItem", "Query"), when=with_jobs),
        reads(f"{RUNS_PREFIX}*", when=with_jobs),
        lists(f"{RUNS_PREFIX}*", when=with_jobs),
        changes=False,
    ),
    _calls(
        names.LOGS,
        "asya.gateway.operations.wiring.logs",
        # It reads what functions and job runs have logged, and no payload, result or message.
        _QUERIES_TASKS,
        Calls(calls=_READS_LINES, on=Resource.LOG_GROUPS),
        # The records of job runs, and the logs that EMR Serverless writes of them.
        Items(table=names.PENDING_TABLE, calls=("GetItem",), when=with_jobs),
        reads(f"{RUNS_PREFIX}*/{LOGS_FOLDER}/*", when=with_jobs),
        lists(f"{RUNS_PREFIX}*", when=with_jobs),
        changes=False,
        exists=with_many_actors,
    ),
    Function(
        name=names.REPORTS,
        entry_point="asya.gateway.lambdas.wiring.report_queues",
        # A window would make each report late, and most batches are full while the mesh is busy. More concurrent batches would
        # meet at the same tasks, and would take from the actors.
        called_by=Queues(
            names=names.REPORT_QUEUES,
            concurrency=20,
            receives=REPORT_RECEIVES,
            retention_days=REPORT_RETENTION_DAYS,
            has_envelopes=False,
        ),
        # Ten messages of 64 KiB have some thousand reports. After a crash of the function they come again when it has passed.
        timeout=120,
        hears=statements.REPORTS,
        in_chains=with_chained_triggers,
        # It records the reports of the mesh and writes the rows of ends. It keeps what it refuses, and passes the reports of other
        # meshes on. x-triggers hears of ended tasks (`protocol §16`).
        needs=(
            uses("tasks"),
            writes(f"{REFUSED_REPORTS_PREFIX}*"),
            writes(f"{RECENT_PREFIX}*", store="results", when=with_index),
            READS_ROLES,
            CHECKS_KEYS,
            Calls(calls=("execute-api:Invoke",), on=Resource.FOREIGN_GATEWAYS),
            sends(names.TRIGGERS, when=with_triggers),
        ),
    ),
    Function(
        name=names.TASK_SWEEP,
        entry_point="asya.gateway.lambdas.wiring.deadline_sweep",
        called_by=Clock(minutes=1, checks="the deadlines of the tasks", without=_without_task_sweep),
        timeout=60,
        # It fails tasks past their deadline, unless ends wait in their queue, finds lost ones, and sends due slots.
        needs=(
            Messages(calls=("GetQueueAttributes",), queues=(names.ENDS,)),
            READS_OUTAGES,
            uses("tasks"),
            Items(table="tasks", calls=("Query",), indexes=(DUE_INDEX, LISTED_INDEX)),
            sends(names.TRIGGERS, when=with_triggers),
            Items(table="tasks", calls=("Query",), indexes=(WAITING_INDEX,), when=with_triggers),
        ),
    ),
    Function(
        name=names.PUSH_FEED,
        entry_point="asya.capabilities.a2a.lambdas.push.push_feed",
        called_by=TableChanges(),
        timeout=_PUSH_TIMEOUT,
        exists=with_tools,
        needs=(
            _QUERIES_TASKS,
            # The event source mapping sends changes that fail repeatedly straight to the dead-letter queue.
            sends(names.PUSH, f"{names.PUSH}-dlq"),
        ),
    ),
    Function(
        name=names.PUSH,
        entry_point="asya.capabilities.a2a.lambdas.push.push",
        # A client may take ten seconds for a notification. One that waits for the share of its owner counts as received: 20
        # receives last for four hours of waiting.
        called_by=Queues(batch=5, receives=20, has_envelopes=False),
        timeout=_PUSH_TIMEOUT,
        exists=with_tools,
        hears=statements.PUSH,
        # It calls URLs of third parties, so it gets the least permissions. It counts the time that each host and each owner takes,
        # and writes nothing else of the table.
        needs=(
            Items(table="tasks", calls=("GetItem",)),
            Items(table="tasks", calls=("UpdateItem",), keys=(f"{SHARE_PREFIX}*",)),
            READS_ROLES,
        ),
    ),
    Function(
        name=names.ROLES,
        entry_point="asya.senders.lambdas.role_listing.role_listing",
        called_by=Deployments(),
        timeout=60,
        # It lists the roles of the mesh, writes the secrets of keys, and reaches nothing else in the table of claims.
        needs=(
            Items(table="sink", calls=("PutItem", "UpdateItem"), keys=(f"{ROLE_PREFIX}*",)),
            Items(table="sink", calls=("PutItem",), keys=(f"{KEY_PREFIX}*",)),
            Items(table="sink", calls=("GetItem",), keys=(KEY_PREFIX,)),
        ),
    ),
)

METRICS = (Metric("ReportsRefused"),)

_LATE = Threshold(
    key="delayed_reports",
    form="age",
    default=5 * 60,
    text="The age of the oldest report that the gateway has not recorded.",
    most=REPORT_RETENTION_DAYS * 86_400 - 60,
    bounds="less than 14d, the retention of the queues of reports",
)


def _reports(queue: str, what: str) -> tuple[Alarm, Alarm]:
    """Declare the alarms of a queue of reports: they are late, or became dead letters."""
    return (
        Alarm(
            name=f"{queue}-delayed",
            severity="critical",
            says=f"The {what} is shown late, and nothing is lost: the messages wait in {{queue}}. "
            "See the log of x-reports.",
            graph="Oldest report",
            step="[Find out why reports are late](../how-to/operate.md#find-out-why-reports-are-late)",
            watched=Delay(queue),
            threshold=_LATE,
        ),
        Alarm(
            name=f"{queue}-dead-letters",
            says="Reports could not be recorded and lie in {queue}. Repair the cause in the log of x-reports (mesh {mesh}), then "
            "run `asya dlq reports replay`.",
            step="[Replay reports](../how-to/operate.md#replay-reports)",
            watched=Series(metric="ApproximateNumberOfMessagesVisible", statistic="Maximum", of=f"{queue}-dlq"),
            threshold=LETTERS,
        ),
    )


_UNDELIVERED = Alarm(
    name="undelivered",
    says="Events or notifications could not be delivered and lie in {queue}. The attributes of a message name the rule or the "
    "subscription, and the error.",
    step="[Find out what was not delivered](../how-to/operate.md#find-out-what-was-not-delivered)",
    watched=Series(metric="ApproximateNumberOfMessagesVisible", statistic="Maximum", of=names.UNDELIVERED),
    threshold=LETTERS,
)

ALARMS = (_UNDELIVERED, *_reports(names.REPORTS, "progress of tasks"), *_reports(names.ENDS, "ends of tasks"))

_REPORTS = Section("overview", "Reports", 7)


def _of_reports(metric: str, label: str, suffix: str = "") -> tuple[Line, ...]:
    """Declare a line for each queue of reports."""
    return tuple(
        Line(metric=metric, statistic="Maximum", of=f"{queue}{suffix}", label=label.format(queue))
        for queue in names.REPORT_QUEUES
    )


GRAPHS = (
    Graph(
        section=TASKS,
        at=3,
        title="Retries and losses",
        lines=lines(
            *("Retried", "SlaExpired", "HopLimit", "Redelivered"),
            *("ReportsDropped", "ReportsRefused", "PreflightsSkipped"),
        ),
    ),
    Graph(section=_REPORTS, at=1, title="Oldest report (s)", lines=_of_reports("ApproximateAgeOfOldestMessage", "{}")),
    Graph(
        section=_REPORTS,
        at=2,
        title="Messages with reports",
        lines=(
            *_of_reports("ApproximateNumberOfMessagesVisible", "{} waiting"),
            *_of_reports("ApproximateNumberOfMessagesNotVisible", "{} in flight"),
        ),
    ),
    Graph(
        section=_REPORTS,
        at=3,
        title="Dead letters of reports",
        lines=_of_reports("ApproximateNumberOfMessagesVisible", "{}", "-dlq"),
    ),
)

TABLES = (
    Table(
        name="tasks",
        holds="Tasks with their reports, lists and links, and the states of triggers",
        indexes=(
            # Paused tasks, unfinished releases, and lanes with something to do.
            Index(name=WAITING_INDEX, partition="waits_in", sort="waits_since", included=("actor",)),
            Index(name=LISTED_INDEX, partition="listed_in", sort="listed_at"),
            Index(name=CHILDREN_INDEX, partition="child_of", sort="listed_at"),
            Index(name=DUE_INDEX, partition="due_in", sort="deadline_at"),
        ),
        streams_changes=True,
    ),
)

PREFIXES = (Prefix(name=REPORTS_PREFIX, holds="Refused reports", kept="payloads"),)

CAPABILITY = Capability(
    name="gateway", functions=FUNCTIONS, metrics=METRICS, alarms=ALARMS, graphs=GRAPHS, tables=TABLES, prefixes=PREFIXES
)
