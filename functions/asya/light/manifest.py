"""Declares the function of light actors, and what all functions measure."""

from asya.function.sqs import QUEUE_RETENTION_DAYS
from asya.manifest import ActorFunction, Capability
from asya.monitoring import (
    ACTORS,
    CREW,
    ENVELOPES,
    KINDS,
    NUMBERS,
    TASKS,
    Alarm,
    Graph,
    Largest,
    Line,
    Metric,
    Of,
    Section,
    Series,
    Silence,
    Threshold,
    Total,
    lines,
    statistics,
)
from asya.needs import OWN, Group, Items, Payloads, sends, writes
from asya.predicates import declares_targets, deduplicates, has_circuit_breaker, sends_everywhere
from asya.protocol.keys import BUFFERED_PREFIX, INBOX_PREFIX, INPUTS_PREFIX, PAYLOADS_PREFIX
from asya.protocol.table_keys import own_hops
from asya.sidecar.needs import BUFFERS_FRAMES, SIDECAR
from asya.sidecar.options import KEEP_INPUT
from asya.stores import Prefix, Table

_DAY = 86_400
_LONGEST_DELAY = 900

FUNCTIONS = (
    ActorFunction(
        kind="handler",
        is_named=False,
        entry_point="asya.light.lambdas.sidecar.sidecar",
        needs=(
            *SIDECAR,
            sends(Group.TARGETS),
            Payloads(to=(Group.TARGETS,), when=declares_targets),
            Payloads(when=sends_everywhere),
            *BUFFERS_FRAMES,
            Items(table="hops", calls=("GetItem", "PutItem"), keys=(f"{own_hops(OWN)}*",), when=deduplicates),
            Items(table="breaker", calls=("GetItem", "PutItem"), keys=(OWN,), when=has_circuit_breaker),
        ),
    ),
)

METRICS = (
    Metric("Received"),
    Metric("Processed", split="outcome"),
    Metric("Sent", split="kind"),
    Metric("Retried"),
    Metric("SlaExpired"),
    Metric("HopLimit"),
    Metric("HandlerDuration", "Milliseconds"),
    Metric("HopLatency", "Milliseconds"),
    Metric("MessageSize", "Bytes"),
    Metric("InFlight"),
    Metric("Redelivered"),
    Metric("ReportsDropped"),
    Metric("PreflightsSkipped"),
    Metric("Sweeps"),
)

ALARMS = (
    Alarm(
        name="deadline-missed",
        says="Tasks were not done by their deadline.",
        graph="Retries and losses; SlaExpired names the actors",
        step="`SlaExpired` by actor. Under `x-task-sweep`, the task waited in a queue",
        watched=Series(metric="SlaExpired"),
        threshold=Threshold(key="deadline_missed", text="Deadlines that passed."),
    ),
    Alarm(
        name="redelivered",
        severity="critical",
        says="Functions crash, time out or are throttled, or AWS refuses their calls; messages come again.",
        graph="Errors by function",
        step="The graph, then the log of the function",
        watched=Series(metric="Redelivered"),
        threshold=Threshold(
            key="redelivered",
            default=20,
            text="Messages that were received before, after a crash, a timeout or an error of AWS.",
        ),
    ),
    Alarm(
        name="oldest-message-{number}",
        severity="critical",
        says="A message has waited too long for one of {each}.",
        graph="Oldest message by queue",
        step="The graph; is the function throttled, too slow, or disabled?",
        watched=Largest(Series(metric="ApproximateAgeOfOldestMessage", statistic="Maximum", of=Of.QUEUES)),
        threshold=Threshold(
            key="oldest_message",
            form="age",
            default=30 * 60,
            text="The age of the oldest message in a queue.",
            least=_LONGEST_DELAY + 60,
            most=QUEUE_RETENTION_DAYS * _DAY - 60,
            bounds="more than 15m, because retries and timers wait that long in queues, and less than 4d, their retention",
        ),
    ),
    Alarm(
        name="throttles",
        severity="critical",
        says="Lambda throttles functions of this account, which share its concurrency.",
        graph="Throttled calls of the account",
        step="Lower `concurrency`, or ask AWS for a higher quota",
        watched=Series(metric="Throttles", of=Of.ACCOUNT),
        threshold=Threshold(
            key="throttles",
            default=10,
            text="Throttled calls of all Lambda functions in the account, which share its concurrency.",
        ),
    ),
    Alarm(
        name="function-errors",
        severity="critical",
        says="Errors of {each}.",
        graph="Errors by function",
        step="The graph, then the log of the function",
        watched=Total(Series(metric="Errors", of=Of.UNQUEUED)),
        threshold=Threshold(
            key="function_errors", default=3, text="Errors of the gateway's functions and of the sweeps."
        ),
    ),
    Alarm(
        name="{each}-stopped",
        severity="critical",
        says="{each} does not finish its sweeps: {undone}. Its log has the cause: {log}",
        step="The log; the rule of the sweep in EventBridge may be disabled",
        watched=Silence(Series(metric="Sweeps", of=Of.SWEEPS)),
        threshold=Threshold(
            key="stopped_sweep",
            form="age",
            default=15 * 60,
            text="How long no sweep of a kind has finished.",
            least=10 * 60,
            # An alarm looks back a day at most, unless its periods are an hour or longer.
            most=_DAY,
            bounds="10m to 1d, because some sweeps run every 5 minutes",
        ),
    ),
)

_QUEUE_AND_FUNCTION = Section("actor", "Queue and function", 2, columns=4)
_COMPARISON = Section("actor", "All actors: the ten with the highest values", 4)
# They are not on the overview, because a dashboard has 2,500 metrics at most.
_COMPARED = (
    ("Messages received", Line(metric="Received", of=Of.OWN_ACTORS, drawn="top")),
    ("Handler p95 (ms)", Line(metric="HandlerDuration", statistic="p95", of=Of.OWN_ACTORS, drawn="top")),
    ("From sent to received p95 (ms)", Line(metric="HopLatency", statistic="p95", of=Of.OWN_ACTORS, drawn="top")),
)

GRAPHS = (
    Graph(
        section=NUMBERS,
        at=2,
        title="Oldest waiting message",
        number="latest",
        lines=(
            Line(
                metric="ApproximateAgeOfOldestMessage",
                statistic="Maximum",
                of=Of.QUEUES,
                drawn="MAX",
                label="seconds",
                period=60,
            ),
        ),
    ),
    Graph(
        section=TASKS,
        at=4,
        title="Throttled calls of the account",
        lines=(Line(metric="Throttles", of=Of.ACCOUNT, label="throttled calls"),),
    ),
    Graph(
        section=ACTORS,
        at=3,
        title="Oldest message by queue (s)",
        lines=(Line(metric="ApproximateAgeOfOldestMessage", statistic="Maximum", of=Of.QUEUES, drawn="top"),),
    ),
    Graph(
        section=ACTORS,
        at=4,
        title="Errors by function",
        lines=(Line(metric="Errors", of=Of.FUNCTIONS, drawn="top"),),
    ),
    Graph(section=CREW, at=1, title="Messages received by the crew", lines=lines("Received", of=Of.CREW)),
    Graph(section=CREW, at=4, title="Finished sweeps", lines=lines("Sweeps", of=Of.SWEEPS)),
    Graph(
        section=ENVELOPES,
        at=1,
        title="Received and processed",
        lines=lines("Received", "Processed", of=Of.PICKED),
    ),
    Graph(section=ENVELOPES, at=3, title="Sent by kind", lines=lines("Sent", of=Of.PICKED)),
    Graph(
        section=ENVELOPES,
        at=4,
        title="Handler (ms)",
        lines=statistics("HandlerDuration", "p50", "p95", of=Of.PICKED),
    ),
    Graph(
        section=ENVELOPES,
        at=5,
        title="From sent to received (ms)",
        lines=statistics("HopLatency", "p50", "p95", of=Of.PICKED),
    ),
    Graph(
        section=ENVELOPES,
        at=6,
        title="Retries and losses",
        lines=lines(
            *("Retried", "SlaExpired", "HopLimit", "Redelivered", "ReportsDropped", "PreflightsSkipped"), of=Of.PICKED
        ),
    ),
    Graph(
        section=ENVELOPES,
        at=7,
        title="Message size (bytes)",
        lines=statistics("MessageSize", "p95", "Maximum", of=Of.PICKED),
    ),
    Graph(
        section=ENVELOPES,
        at=8,
        title="Messages of an invocation",
        lines=statistics("InFlight", "Average", "Maximum", of=Of.PICKED),
    ),
    Graph(
        section=_QUEUE_AND_FUNCTION,
        at=1,
        title="Waiting messages, and dead letters",
        lines=(
            Line(metric="ApproximateNumberOfMessagesVisible", statistic="Maximum", of=Of.PICKED, label="waiting"),
            Line(
                metric="ApproximateNumberOfMessagesVisible",
                statistic="Maximum",
                of=Of.PICKED_LETTERS,
                label="dead letters",
            ),
        ),
    ),
    Graph(
        section=_QUEUE_AND_FUNCTION,
        at=2,
        title="Oldest message (s)",
        lines=(Line(metric="ApproximateAgeOfOldestMessage", statistic="Maximum", of=Of.PICKED, label="oldest"),),
    ),
    Graph(
        section=_QUEUE_AND_FUNCTION,
        at=3,
        title="Errors and throttles",
        lines=lines("Errors", "Throttles", of=Of.PICKED),
    ),
    Graph(
        section=_QUEUE_AND_FUNCTION,
        at=4,
        title="Instances",
        lines=lines("ConcurrentExecutions", of=Of.PICKED, statistic="Maximum"),
    ),
    Graph(section=KINDS, at=9, title="Finished sweeps", lines=lines("Sweeps", of=Of.PICKED)),
    *(Graph(section=_COMPARISON, title=title, lines=(line,)) for title, line in _COMPARED),
)

TABLES = (
    Table(name="hops", holds="The hops of actors that deduplicate"),
    Table(name="breaker", holds="Circuit breakers"),
)

PREFIXES = (
    Prefix(name=PAYLOADS_PREFIX, holds="Claim checks of functions", kept="payloads"),
    Prefix(name=INBOX_PREFIX, holds="Claim checks of senders", kept="payloads"),
    Prefix(name=BUFFERED_PREFIX, holds="Buffered frames", kept="payloads"),
    Prefix(name=INPUTS_PREFIX, holds="Inputs of hops (`keep_input`)", kept="payloads"),
)

CAPABILITY = Capability(
    name="sidecar",
    functions=FUNCTIONS,
    options=(KEEP_INPUT,),
    # Only the gateway reads them. The name stands where no id and no other name can put it: names have no dots.
    option_needs={KEEP_INPUT.key: (writes(f"{INPUTS_PREFIX}*.{OWN}.json"),)},
    metrics=METRICS,
    alarms=ALARMS,
    graphs=GRAPHS,
    tables=TABLES,
    prefixes=PREFIXES,
)
