"""Declares the function of light actors, and what all functions measure."""

from asya.function.sqs_limits import QUEUE_RETENTION_DAYS
from asya.manifest import ActorFunction, Capability
from asya.monitoring import Alarm, Largest, Metric, Of, Series, Silence, Threshold, Total
from asya.needs import Group, Items, Payloads, sends, writes
from asya.predicates import declares_targets, deduplicates, has_circuit_breaker, keeps_input, sends_everywhere
from asya.protocol.keys import INPUTS_PREFIX
from asya.sidecar.needs import BUFFERS_FRAMES, SIDECAR

_DAY = 86_400
_LONGEST_DELAY = 900

FUNCTIONS = (
    ActorFunction(
        kind="handler",
        is_named=False,
        entry_point="asya.light.lambdas.wiring.sidecar",
        needs=(
            *SIDECAR,
            sends(Group.TARGETS),
            Payloads(to=(Group.TARGETS,), when=declares_targets),
            Payloads(when=sends_everywhere),
            *BUFFERS_FRAMES,
            # Only the gateway reads them.
            writes(f"{INPUTS_PREFIX}*", when=keeps_input),
            Items(table="hops", calls=("GetItem", "PutItem"), when=deduplicates),
            Items(table="breaker", calls=("GetItem", "PutItem"), when=has_circuit_breaker),
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
        watched=Series(metric="SlaExpired"),
        threshold=Threshold(key="deadline_missed", text="Deadlines that passed."),
    ),
    Alarm(
        name="redelivered",
        says="Functions crash, time out or are throttled, or AWS refuses their calls; messages come again.",
        graph="Errors by function",
        watched=Series(metric="Redelivered"),
        threshold=Threshold(
            key="redelivered",
            default=20,
            text="Messages that were received before, after a crash, a timeout or an error of AWS.",
        ),
    ),
    Alarm(
        name="oldest-message-{number}",
        says="A message has waited too long for one of {each}.",
        graph="Oldest message by queue",
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
        says="Lambda throttles functions of this account, which share its concurrency.",
        graph="Throttled calls of the account",
        watched=Series(metric="Throttles", of=Of.ACCOUNT),
        threshold=Threshold(
            key="throttles",
            default=10,
            text="Throttled calls of all Lambda functions in the account, which share its concurrency.",
        ),
    ),
    Alarm(
        name="function-errors",
        says="Errors of {each}.",
        graph="Errors by function",
        watched=Total(Series(metric="Errors", of=Of.UNQUEUED)),
        threshold=Threshold(
            key="function_errors", default=3, text="Errors of the gateway's functions and of the sweeps."
        ),
    ),
    Alarm(
        name="{each}-stopped",
        says="{each} does not finish its sweeps: {undone}. Its log has the cause: {log}",
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

CAPABILITY = Capability(name="sidecar", functions=FUNCTIONS, metrics=METRICS, alarms=ALARMS)
