"""Declares the functions of the actors that end envelopes or keep checkpoints."""

from asya.ends import statements
from asya.ends.results import RECENT_PREFIX
from asya.manifest import ActorFunction, Capability, crew_actor
from asya.monitoring import (
    ACTORS,
    CREW,
    ENVELOPES,
    NUMBERS,
    TASKS,
    Alarm,
    Graph,
    Line,
    Metric,
    Of,
    Series,
    Share,
    Threshold,
    lines,
    statistics,
)
from asya.needs import FAILED, OWN, SUCCEEDED, Group, Objects, Payloads, lists, sends, writes
from asya.predicates import with_chained_triggers, with_index
from asya.protocol import names, states
from asya.protocol.keys import CANCELED_PREFIX, CHECKPOINT_PREFIX, SUMP_PREFIX, SUPERSEDED_PREFIX
from asya.sidecar.needs import (
    ADMITS,
    CHECKS_KEYS,
    CLAIMS,
    CREW_SIDECAR,
    ENDS,
    ENTERS_TASKS,
    NOTES_LETTERS,
    READS_ALL_PAYLOADS,
    READS_CLAIMS,
    READS_OWN_PAYLOADS,
    REPORTER,
)
from asya.stores import Prefix, Table

_TOLD_OF_ENDS = (names.SINK, names.SUMP, Group.HOOKS, Group.FAN_IN)
# Without it S3 answers 403 for a missing object instead of 404.
_LISTS_RESULTS = lists("*", store="results")

FUNCTIONS = (
    ActorFunction(
        kind="end",
        text="your own end actor; it needs a `handler`, `handler_mode: envelope` or `envelope-v1`, and `validate: false`",
        entry_point="asya.ends.lambdas.wiring.end_actor",
        # It neither routes nor reports: x-sink and x-sump end its envelopes (`protocol §5`).
        needs=(
            sends(OWN, names.SINK, names.SUMP),
            *READS_OWN_PAYLOADS,
            # A failed envelope on its way to x-sump may need a claim check.
            Payloads(to=(OWN, names.SINK, names.SUMP)),
            *ADMITS,
            ENTERS_TASKS,
            NOTES_LETTERS,
        ),
    ),
    crew_actor(
        names.SINK,
        "asya.ends.lambdas.wiring.ends",
        hears=statements.SINK,
        # It claims and stores ends, reports them, sends copies to hooks, and notifies sets of lost slices (`§11`).
        in_chains=with_chained_triggers,
        needs=(
            *REPORTER,
            CHECKS_KEYS,
            ENDS,
            sends(*_TOLD_OF_ENDS),
            *READS_ALL_PAYLOADS,
            Payloads(to=_TOLD_OF_ENDS),
            CLAIMS,
            READS_CLAIMS,
            _LISTS_RESULTS,
            # A later generation replaces the object of an earlier one.
            Objects(calls=("DeleteObject", "GetObject", "PutObject"), keys=("*",), store="results"),
        ),
    ),
    crew_actor(
        names.SUMP,
        "asya.ends.lambdas.wiring.ends",
        hears=statements.SUMP,
        # It claims failed ends, stores a copy, reports and indexes it, and notifies sets of lost slices (`§11`). What it finds
        # canceled it stores as x-sink does.
        in_chains=with_chained_triggers,
        needs=(
            *REPORTER,
            CHECKS_KEYS,
            ENDS,
            sends(names.SUMP, Group.FAN_IN),
            *READS_ALL_PAYLOADS,
            CLAIMS,
            READS_CLAIMS,
            _LISTS_RESULTS,
            # A conditional write or deletion reads the ETag of the object. The end of a later generation removes older results.
            Objects(
                calls=("DeleteObject", "GetObject"),
                keys=tuple(f"{prefix}*" for prefix in (SUMP_PREFIX, CANCELED_PREFIX, FAILED, SUCCEEDED)),
                store="results",
            ),
            writes(*(f"{prefix}*" for prefix in (SUMP_PREFIX, SUPERSEDED_PREFIX, CANCELED_PREFIX)), store="results"),
            writes(f"{RECENT_PREFIX}*", store="results", when=with_index),
        ),
    ),
    crew_actor(
        names.CHECKPOINT,
        "asya.ends.lambdas.wiring.checkpoint",
        hears=statements.CHECKPOINT,
        # It stores a copy of each envelope and sends the envelope along its route (`protocol §11`).
        needs=(
            *CREW_SIDECAR,
            CHECKS_KEYS,
            sends(Group.TARGETS),
            Payloads(),
            writes(f"{CHECKPOINT_PREFIX}*", store="results"),
        ),
    ),
)

METRICS = (Metric("Failed", split="reason"), Metric("TimeToResult", "Milliseconds"))

ALARMS = (
    Alarm(
        name=names.SUMP,
        says="Envelopes have failed for good: x-sump logs each one and keeps a copy under sump/.",
        graph="Failures",
        step="The table at the end of the dashboard, then `asya status ID`",
        watched=Series(metric="NumberOfMessagesSent", of=names.SUMP),
        threshold=Threshold(key="failures", text="Envelopes at x-sump."),
    ),
    Alarm(
        name="failure-rate",
        severity="critical",
        says="A large share of the envelopes fails.",
        graph="Failures by actor and reason",
        # With fewer ended tasks in a period, a single failure would be a high rate; the alarm for failures tells about that one.
        step="The graph",
        watched=Share(
            part=Series(metric="Failed"),
            rest=Series(metric="Processed", of=names.SINK, values=(states.SUCCEEDED,)),
            least=20,
        ),
        threshold=Threshold(
            key="failure_rate",
            form="percent",
            default=5,
            text="The share of failed tasks; periods with fewer than 20 ended tasks do not count.",
        ),
        periods=(3, 2),
    ),
)

GRAPHS = (
    Graph(
        section=NUMBERS,
        at=1,
        title="Failures",
        number="whole range",
        lines=(Line(metric="Failed", label="in this time range"),),
    ),
    Graph(
        section=TASKS,
        at=1,
        title="Throughput",
        lines=(
            Line(metric="Received", label="messages received"),
            Line(metric="TimeToResult", statistic="SampleCount", label="tasks ended"),
        ),
    ),
    Graph(section=TASKS, at=2, title="Time to result (ms)", lines=statistics("TimeToResult", "p50", "p95")),
    Graph(
        section=ACTORS,
        at=1,
        title="Failures by actor and reason",
        lines=(Line(metric="Failed", of=Of.OWN_ACTORS, drawn="top"),),
    ),
    Graph(section=CREW, at=2, title="Ends at x-sink", lines=lines("Processed", of=names.SINK)),
    Graph(section=ENVELOPES, at=2, title="Failures by reason", lines=lines("Failed", of=Of.PICKED)),
    Graph(
        section=ENVELOPES,
        at=9,
        title="Time to result (ms), at x-sink",
        lines=statistics("TimeToResult", "p50", "p95", of=Of.PICKED),
    ),
)

TABLES = (
    Table(
        name="sink",
        holds="Claims on ends, and what judges senders: roles, owners of ids, reported dead letters, starts, outages",
    ),
)

PREFIXES = (
    Prefix(name="", holds="Results", kept="results", store="results"),
    # Each night x-index merges them into a day. It may rebuild a day for a month (`OLDEST` in that job).
    Prefix(name=RECENT_PREFIX, holds="New rows of the index of results", kept=30, store="results", exists=with_index),
)

CAPABILITY = Capability(
    name="crew", functions=FUNCTIONS, metrics=METRICS, alarms=ALARMS, graphs=GRAPHS, tables=TABLES, prefixes=PREFIXES
)
