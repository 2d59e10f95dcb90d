"""Declares the functions of heavy actors and their job runs."""

from asya.capabilities.legacy.options import numbers_children
from asya.heavy import statements
from asya.manifest import ActorFunction, Capability, Function, Queues, Schedule
from asya.monitoring import KINDS, NUMBERS, Alarm, Graph, Line, Metric, Of, Section, Series, Threshold, lines
from asya.needs import (
    EACH,
    OWN,
    Calls,
    Group,
    Items,
    Payloads,
    Resource,
    lists,
    reads,
    reads_and_writes,
    sends,
    writes,
)
from asya.predicates import always, with_jobs
from asya.protocol import names, states
from asya.protocol.job_runs import BATCHES_FOLDER, PENDING_PREFIX, RUNS_PREFIX, SCRATCH_PREFIX
from asya.protocol.keys import DATA_PREFIX
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import OWNER_PREFIX
from asya.sidecar.needs import CHECKS_KEYS, COUNTS_STARTS, CREW_SIDECAR, GIVES_KEYS, READS_ROLES, READS_STATES, REPORTS
from asya.stores import Prefix, Table

_TIMEOUT = 120
_USES_PENDING = Items(
    table=names.PENDING_TABLE, calls=("BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")
)


def with_numbering_jobs(mesh: MeshTable, _name: str) -> bool:
    """With heavy actors that number their children."""
    return any(actor.kind == "spark" and numbers_children(actor) for actor in mesh.actors.values())


FUNCTIONS = (
    ActorFunction(
        kind="spark",
        is_named=False,
        entry_point="asya.heavy.lambdas.wiring.enqueue",
        timeout=_TIMEOUT,
        # Large batches save calls of DynamoDB. The wait for a batch is short compared with a job run.
        queues=Queues(batch=100, window=1),
        # For the index of results.
        on_demand=(names.INDEX,),
        hears=statements.ENQUEUE,
        # It makes envelopes pending. User code runs in the job, with the job's role.
        needs=(
            *CREW_SIDECAR,
            CHECKS_KEYS,
            sends(OWN, names.SINK, names.SUMP, names.DISPATCH),
            Payloads(to=(OWN, names.SINK, names.SUMP)),
            writes(f"{PENDING_PREFIX}{OWN}/*"),
            _USES_PENDING,
        ),
    ),
    Function(
        name=names.DISPATCH,
        entry_point="asya.heavy.lambdas.wiring.dispatch",
        # The runs of one actor are formed one after another. Concurrency lets several actors dispatch independently.
        called_by=Queues(concurrency=5),
        timeout=_TIMEOUT,
        exists=with_jobs,
        in_chains=always,
        hears=statements.DISPATCH,
        # It forms job runs from pending envelopes and starts them.
        needs=(
            *COUNTS_STARTS,
            READS_ROLES,
            GIVES_KEYS,
            sends(names.SINK, names.SUMP, names.DISPATCH, names.COMPLETION),
            REPORTS,
            READS_STATES,
            _USES_PENDING,
            reads_and_writes(f"{RUNS_PREFIX}*"),
            reads(f"{PENDING_PREFIX}*"),
            Payloads(to=(names.SINK, names.SUMP)),
            lists(f"{RUNS_PREFIX}*", f"{PENDING_PREFIX}*"),
            Calls(calls=("emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"), on=Resource.APPLICATION),
            Calls(calls=("emr-serverless:GetJobRun", "emr-serverless:TagResource"), on=Resource.JOB_RUNS),
            Calls(calls=("iam:PassRole",), on=Resource.JOB_ROLES),
        ),
    ),
    Function(
        name=names.COMPLETION,
        entry_point="asya.heavy.lambdas.wiring.complete",
        # A run may have thousands of envelopes, so an invocation takes one event. Routing the results of a large run
        # takes minutes; the concurrency leaves invocations for the frequent, short checks of other runs.
        called_by=Queues(batch=1, concurrency=30),
        timeout=300,
        memory=1024,
        exists=with_jobs,
        traces=True,
        in_chains=always,
        hears=statements.COMPLETION,
        # It reads the commit of an ended run and routes its frames, for every heavy actor.
        needs=(
            *COUNTS_STARTS,
            READS_ROLES,
            GIVES_KEYS,
            sends(names.SINK, names.SUMP, names.COMPLETION, names.DISPATCH, Group.TARGETS_OF_JOBS),
            REPORTS,
            READS_STATES,
            _USES_PENDING,
            reads(f"{RUNS_PREFIX}*", f"{PENDING_PREFIX}*"),
            Payloads(),
            Items(table="sink", calls=("UpdateItem",), keys=(f"{OWNER_PREFIX}*",), when=with_numbering_jobs),
            lists(f"{RUNS_PREFIX}*", f"{PENDING_PREFIX}*"),
            Calls(calls=("emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"), on=Resource.JOB_RUNS),
            # A resident run gets no further batch before its job run is canceled.
            writes(f"{RUNS_PREFIX}{EACH}/*/{BATCHES_FOLDER}/*", each=Group.LINGERING),
        ),
    ),
    Function(
        name=names.RECONCILE,
        entry_point="asya.heavy.lambdas.wiring.reconcile",
        called_by=Schedule(
            minutes=5, rule="reconcile", checks="lost job runs", without="lost job runs are not repaired"
        ),
        timeout=_TIMEOUT,
        exists=with_jobs,
        # It finds lost envelopes and runs, and sends them to the dispatcher or the completion.
        needs=(
            sends(names.DISPATCH, names.COMPLETION),
            _USES_PENDING,
            reads(f"{RUNS_PREFIX}*"),
            lists(f"{RUNS_PREFIX}*"),
            Calls(calls=("emr-serverless:GetJobRun",), on=Resource.JOB_RUNS),
        ),
    ),
)

METRICS = (
    Metric("PendingEnvelopes"),
    Metric("EnvelopesPerRun"),
    Metric("JobRuns", split="state"),
    Metric("RunsQueued"),
    Metric("RunsRunning"),
    Metric("RunDelay", "Seconds"),
)

ALARMS = (
    Alarm(
        name="stuck-runs",
        says="A job run waits too long for its start, or exceeds max_run.",
        graph="Longest delay of a job run",
        step="[Troubleshoot a heavy actor](../how-to/operate.md#troubleshoot-a-heavy-actor)",
        watched=Series(metric="RunDelay", statistic="Maximum"),
        threshold=Threshold(
            key="stuck_runs",
            form="age",
            default=3600,
            text="How long a job run waits to run, or exceeds `max_run`.",
        ),
        # The reconciler measures every 5 minutes; of two periods, one has a value.
        periods=(2, 1),
        when=with_jobs,
    ),
)

_JOB_RUNS = Section("overview", "Job runs", 4, when=with_jobs)

GRAPHS = (
    Graph(
        section=NUMBERS,
        at=4,
        title="Job runs",
        number="latest",
        lines=(
            Line(metric="RunsRunning", statistic="Maximum", of=Of.ACTORS, drawn="SUM", label="running"),
            Line(metric="RunsQueued", statistic="Maximum", of=Of.ACTORS, drawn="SUM", label="queued"),
        ),
        when=with_jobs,
    ),
    Graph(
        section=_JOB_RUNS,
        at=1,
        title="Pending envelopes",
        lines=(Line(metric="PendingEnvelopes", statistic="Maximum", of=Of.ACTORS, drawn="top"),),
    ),
    Graph(
        section=_JOB_RUNS,
        at=2,
        title="Longest delay of a job run (s)",
        lines=(Line(metric="RunDelay", statistic="Maximum", of=Of.ACTORS, drawn="top"),),
    ),
    Graph(
        section=_JOB_RUNS,
        at=3,
        title="Job runs that failed, waited or were refused",
        lines=(Line(metric="JobRuns", of=Of.ACTORS, values=(states.FAILED, states.WAITING, "refused"), drawn="top"),),
    ),
    Graph(
        section=KINDS,
        at=1,
        title="Job runs",
        lines=lines("RunsRunning", "RunsQueued", of=Of.PICKED, statistic="Maximum"),
    ),
    Graph(section=KINDS, at=2, title="Job runs by state", lines=lines("JobRuns", of=Of.PICKED)),
    Graph(
        section=KINDS,
        at=3,
        title="Longest delay of a job run (s)",
        lines=lines("RunDelay", of=Of.PICKED, statistic="Maximum"),
    ),
    Graph(
        section=KINDS,
        at=4,
        title="Pending envelopes",
        lines=lines("PendingEnvelopes", of=Of.PICKED, statistic="Maximum"),
    ),
    Graph(
        section=KINDS,
        at=5,
        title="Envelopes of a job run",
        lines=lines("EnvelopesPerRun", of=Of.PICKED, statistic="Average"),
    ),
)

TABLES = (Table(name=names.PENDING_TABLE, holds="Pending envelopes and job runs"),)

PREFIXES = (
    Prefix(name=PENDING_PREFIX, holds="Pending envelopes of heavy actors", kept="payloads"),
    Prefix(name=RUNS_PREFIX, holds="Files of job runs", kept="runs"),
    Prefix(name=f"{DATA_PREFIX}{SCRATCH_PREFIX}", holds="Scratch of job runs", kept="runs"),
)

CAPABILITY = Capability(
    name="spark", functions=FUNCTIONS, metrics=METRICS, alarms=ALARMS, graphs=GRAPHS, tables=TABLES, prefixes=PREFIXES
)
