"""The dashboard of one actor, which a variable of the dashboard picks."""

from collections.abc import Iterable
from typing import Any

from asya import registry
from asya.protocol import names
from asya_infra.constructs.observability.widgets import Line, Page, Search, graph, log_table, text
from asya_infra.mesh import Mesh

# CloudWatch replaces this text in the whole dashboard by the picked actor.
PLACEHOLDER = "PICKED-ACTOR"

_ERRORS = (
    "fields @timestamp, level, message, envelope_id, reason",
    'filter level in ["ERROR", "WARNING"] or @message like /Task timed out|Runtime.ExitError|signal: killed/',
    "sort @timestamp desc",
    "limit 20",
)


def actor_page(mesh: Mesh) -> dict[str, Any]:
    """Return the body of the dashboard. The names in the variable are those that reported messages in the last two weeks."""
    namespace = mesh.namespace
    search = f'{{{names.METRICS_NAMESPACE},namespace,actor}} MetricName="Received" namespace="{namespace}"'
    variable = {
        "type": "pattern",
        "pattern": PLACEHOLDER,
        "inputType": "select",
        "id": "actor",
        "label": "Actor",
        "defaultValue": "__FIRST",
        "visible": True,
        "search": search,
        "populateFrom": "actor",
    }
    page = Page(mesh.addresses.region)
    back = f"[Overview](#dashboards:name=asya-{namespace}-{mesh.addresses.region})"
    page.row(text(f"# {PLACEHOLDER} of the mesh {namespace}\n{back}", height=2))
    _envelopes(page, namespace)
    _queue_and_function(page, namespace)
    _kinds(page, namespace)
    _comparison(page, mesh)
    page.row(log_table("Errors and warnings", [mesh.addresses.log_group_name(PLACEHOLDER)], _ERRORS))
    return {"start": "-PT3H", "variables": [variable], "widgets": page.placed}


def _envelopes(page: Page, namespace: str) -> None:
    page.section("Envelopes")
    counts = ("Retried", "SlaExpired", "HopLimit", "Redelivered", "ReportsDropped", "PreflightsSkipped")
    page.row(
        graph("Received and processed", [_own(namespace, "Received"), _split(namespace, "Processed", "outcome")]),
        graph("Failures by reason", [_split(namespace, "Failed", "reason")]),
        graph("Sent by kind", [_split(namespace, "Sent", "kind")]),
    )
    page.row(
        graph("Handler (ms)", _own_percentiles(namespace, "HandlerDuration", ("p50", "p95"))),
        graph("From sent to received (ms)", _own_percentiles(namespace, "HopLatency", ("p50", "p95"))),
        graph("Retries and losses", [_own(namespace, metric) for metric in counts]),
    )
    page.row(
        graph("Message size (bytes)", _own_percentiles(namespace, "MessageSize", ("p95", "Maximum"))),
        graph("Messages of an invocation", _own_percentiles(namespace, "InFlight", ("Average", "Maximum"))),
        graph("Time to result (ms), at x-sink", _own_percentiles(namespace, "TimeToResult", ("p50", "p95"))),
    )


def _queue_and_function(page: Page, namespace: str) -> None:
    page.section("Queue and function")
    queue, dlq = names.queue_name(namespace, PLACEHOLDER), names.dlq_name(namespace, PLACEHOLDER)
    # A longer name of a function ends with a hash; its graphs are empty.
    function = f"asya-{namespace}-{PLACEHOLDER}"
    waiting = "ApproximateNumberOfMessagesVisible"
    page.row(
        graph(
            "Waiting messages, and dead letters",
            [_queue(queue, waiting, "waiting"), _queue(dlq, waiting, "dead letters")],
            width=6,
        ),
        graph("Oldest message (s)", [_queue(queue, "ApproximateAgeOfOldestMessage", "oldest")], width=6),
        graph("Errors and throttles", [_function(function, metric) for metric in ("Errors", "Throttles")], width=6),
        graph(
            "Instances",
            [_function(function, "ConcurrentExecutions", statistic="Maximum")],
            width=6,
        ),
    )


def _kinds(page: Page, namespace: str) -> None:
    page.section("Job runs, sets, pauses, dead letters and sweeps: actors of these kinds")
    runs = [_own(namespace, metric, statistic="Maximum") for metric in ("RunsRunning", "RunsQueued")]
    page.row(
        graph("Job runs", runs),
        graph("Job runs by state", [_split(namespace, "JobRuns", "state")]),
        graph("Longest delay of a job run (s)", [_own(namespace, "RunDelay", statistic="Maximum")]),
    )
    page.row(
        graph("Pending envelopes", [_own(namespace, "PendingEnvelopes", statistic="Maximum")]),
        graph("Envelopes of a job run", [_own(namespace, "EnvelopesPerRun", statistic="Average")]),
        graph("Dead letters", [_own(namespace, "DeadLetters", statistic="Maximum")]),
    )
    page.row(
        graph(
            "Open sets and open pauses",
            [_own(namespace, metric, statistic="Maximum") for metric in ("FanInOpen", "PausesOpen")],
        ),
        graph("Oldest pause (s)", [_own(namespace, "PausedAge", statistic="Maximum")]),
        graph("Finished sweeps", [_own(namespace, "Sweeps")]),
    )
    triggers = ("TriggersFired", "TriggersFailed", "TriggersSkipped", "SlotsMissed")
    page.row(
        graph("Triggers", [_own(namespace, metric) for metric in triggers]),
        graph("Webhooks", [_own(namespace, metric) for metric in ("WebhooksTaken", "WebhooksRefused")]),
        graph("Lateness of waits (s)", [_own(namespace, "WaitsLate", statistic="Maximum")]),
    )


def _comparison(page: Page, mesh: Mesh) -> None:
    """Add graphs of all own actors. They are not on the overview, because a dashboard has 2,500 metrics at most."""
    page.section("All actors: the ten with the highest values")
    own = (f'namespace="{mesh.namespace}"', *(f'NOT actor="{name}"' for name in registry.of(mesh.table).own_queues))
    searches = {
        "Messages received": ("Received", "Sum"),
        "Handler p95 (ms)": ("HandlerDuration", "p95"),
        "From sent to received p95 (ms)": ("HopLatency", "p95"),
    }
    schema = (names.METRICS_NAMESPACE, "namespace", "actor")
    page.row(
        *(
            graph(
                title,
                [
                    Line(
                        expression=Search(schema=schema, metric=metric, terms=own, statistic=statistic).top(),
                        label="${PROP('Dim.actor')}",
                    )
                ],
            )
            for title, (metric, statistic) in searches.items()
        )
    )


def _own(namespace: str, metric: str, *, statistic: str = "Sum", label: str = "") -> Line:
    dimensions = ("namespace", namespace, "actor", PLACEHOLDER)
    return Line(metric=(names.METRICS_NAMESPACE, metric, *dimensions), statistic=statistic, label=label or metric)


def _own_percentiles(namespace: str, metric: str, statistics: Iterable[str]) -> list[Line]:
    return [_own(namespace, metric, statistic=each, label=each) for each in statistics]


def _split(namespace: str, metric: str, split: str) -> Line:
    search = Search(
        schema=(names.METRICS_NAMESPACE, "namespace", "actor", split),
        metric=metric,
        terms=(f'namespace="{namespace}"', f'actor="{PLACEHOLDER}"'),
    )
    return Line(expression=str(search), label=f"${{PROP('Dim.{split}')}}")


def _queue(queue: str, metric: str, label: str) -> Line:
    return Line(metric=("AWS/SQS", metric, "QueueName", queue), statistic="Maximum", label=label)


def _function(function: str, metric: str, *, statistic: str = "Sum") -> Line:
    return Line(metric=("AWS/Lambda", metric, "FunctionName", function), statistic=statistic, label=metric)
