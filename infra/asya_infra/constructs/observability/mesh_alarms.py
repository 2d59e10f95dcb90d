"""The alarms of a mesh: one for each concern, whatever the number of actors, and one for ten queues.

An alarm cannot watch a SEARCH, and SQS has no metric for all queues of a mesh. `docs/decisions/alarms.md` weighs the ways.
"""

import math
from collections.abc import Iterable, Iterator

from asya import registry
from asya.protocol import names
from asya.wait.limits import longest_wait
from asya_infra.constructs.observability.alarms import (
    MAX_METRICS,
    METRICS_NAMESPACE,
    PERIOD,
    Alarm,
    MetricSource,
    queue_metric,
)
from asya_infra.constructs.observability.inventory import queue_actors, unqueued_functions
from asya_infra.constructs.observability.report_alarms import report_alarms
from asya_infra.mesh import Mesh

# With fewer ended tasks in a period, a single failure would be a high rate; the alarm for failures tells about that one.
_MIN_ENDS = 20
# The share of the longest pause at which the alarm goes off at the latest: somebody must have time to answer.
_LATEST_PAUSE_ALARM = 0.75


def mesh_alarms(mesh: Mesh) -> list[Alarm]:
    """Return the alarms of a mesh."""
    return [
        *_tasks(mesh),
        *_queues(mesh),
        *report_alarms(mesh),
        *_functions(mesh),
        *_runs(mesh),
        *_sweeps(mesh),
        *_slots(mesh),
    ]


def _tasks(mesh: Mesh) -> Iterator[Alarm]:
    thresholds = mesh.file.notify.thresholds
    failed = _of_the_mesh(mesh, "Failed", "Sum")
    if thresholds.failures is not None:
        queue = names.queue_name(mesh.namespace, names.SUMP)
        yield Alarm(
            name=names.SUMP,
            description="Envelopes have failed for good: x-sump logs each one and keeps a copy under sump/. "
            + _see(mesh, "Failures"),
            sources=(queue_metric(queue, "NumberOfMessagesSent", "Sum"),),
            threshold=thresholds.failures,
        )
    if thresholds.failure_rate is not None:
        succeeded = MetricSource(
            namespace=METRICS_NAMESPACE,
            metric="Processed",
            statistic="Sum",
            dimensions={"namespace": mesh.namespace, "actor": names.SINK, "outcome": "succeeded"},
        )
        yield Alarm(
            name="failure-rate",
            description="A large share of the envelopes fails. " + _see(mesh, "Failures by actor and reason"),
            sources=(failed, succeeded),
            # SUM over an array ignores a metric without data; m0 / (m0 + m1) would have no value if nothing succeeds.
            expression=f"IF(SUM([m0, m1]) >= {_MIN_ENDS}, 100 * m0 / SUM([m0, m1]), 0)",
            threshold=thresholds.failure_rate,
            periods=(3, 2),
        )
    if thresholds.deadline_missed is not None:
        yield Alarm(
            name="deadline-missed",
            description="Tasks were not done by their deadline. "
            + _see(mesh, "Retries and losses; SlaExpired names the actors"),
            sources=(_of_the_mesh(mesh, "SlaExpired", "Sum"),),
            threshold=thresholds.deadline_missed,
        )
    if thresholds.oldest_pause is not None:
        longest = longest_wait(mesh.table.retention).total_seconds()
        yield Alarm(
            name="oldest-pause",
            description="A task has waited long for an answer, and will fail without one. "
            + _see(mesh, "Oldest pause (s)"),
            sources=(_of_the_mesh(mesh, "PausedAge", "Maximum"),),
            threshold=min(thresholds.oldest_pause, longest * _LATEST_PAUSE_ALARM),
        )


def _queues(mesh: Mesh) -> Iterator[Alarm]:
    thresholds = mesh.file.notify.thresholds
    if thresholds.dead_letters is not None:
        yield Alarm(
            name="dead-letters",
            description="Messages could not be delivered: `asya dlq list` shows them. "
            + _see(mesh, "Dead letters by actor"),
            sources=(_of_the_mesh(mesh, "DeadLetters", "Maximum"),),
            threshold=thresholds.dead_letters,
            # A sweep may fail; of two periods, one has a value.
            periods=(2, 1),
        )
    if thresholds.redelivered is not None:
        yield Alarm(
            name="redelivered",
            description="Functions crash, time out or are throttled, or AWS refuses their calls; messages come again. "
            + _see(mesh, "Errors by function"),
            sources=(_of_the_mesh(mesh, "Redelivered", "Sum"),),
            threshold=thresholds.redelivered,
        )
    if thresholds.oldest_message is not None:
        for number, actors in enumerate(_groups(queue_actors(mesh.table)), start=1):
            yield Alarm(
                name=f"oldest-message-{number}",
                description=f"A message has waited too long for one of {', '.join(actors)}. "
                + _see(mesh, "Oldest message by queue"),
                sources=tuple(
                    queue_metric(names.queue_name(mesh.namespace, actor), "ApproximateAgeOfOldestMessage", "Maximum")
                    for actor in actors
                ),
                expression=_over("MAX", len(actors)),
                threshold=thresholds.oldest_message,
            )


def _functions(mesh: Mesh) -> Iterator[Alarm]:
    thresholds = mesh.file.notify.thresholds
    if thresholds.throttles is not None:
        yield Alarm(
            name="throttles",
            description="Lambda throttles functions of this account, which share its concurrency. "
            + _see(mesh, "Throttled calls of the account"),
            sources=(MetricSource(namespace="AWS/Lambda", metric="Throttles", statistic="Sum"),),
            threshold=thresholds.throttles,
        )
    if thresholds.function_errors is not None:
        functions = unqueued_functions(mesh)
        yield Alarm(
            name="function-errors",
            description=f"Errors of {', '.join(functions)}. " + _see(mesh, "Errors by function"),
            sources=tuple(
                MetricSource(
                    namespace="AWS/Lambda",
                    metric="Errors",
                    statistic="Sum",
                    dimensions={"FunctionName": names.function_name(mesh.namespace, function)},
                )
                for function in functions
            ),
            expression=_over("SUM", len(functions)),
            threshold=thresholds.function_errors,
        )


def _runs(mesh: Mesh) -> Iterator[Alarm]:
    threshold = mesh.file.notify.thresholds.stuck_runs
    if threshold is not None and names.RECONCILE in registry.sweeps_of(mesh.table):
        yield Alarm(
            name="stuck-runs",
            description="A job run waits too long for its start, or exceeds max_run. "
            + _see(mesh, "Longest delay of a job run"),
            sources=(_of_the_mesh(mesh, "RunDelay", "Maximum"),),
            threshold=threshold,
            # The reconciler measures every 5 minutes; of two periods, one has a value.
            periods=(2, 1),
        )


def _slots(mesh: Mesh) -> Iterator[Alarm]:
    threshold = mesh.file.notify.thresholds.slots_missed
    if threshold is not None and any(trigger.schedule is not None for trigger in mesh.table.triggers.values()):
        yield Alarm(
            name="slots-missed",
            description="Slots of schedules were later than catch_up, so their tasks do not start. "
            f"The log {mesh.addresses.log_group_name(names.TASK_SWEEP)} names the triggers; `asya backfill` starts the slots. "
            + _see(mesh, "Failures and missed slots"),
            sources=(_of_the_mesh(mesh, "SlotsMissed", "Sum"),),
            threshold=threshold,
        )


def _sweeps(mesh: Mesh) -> Iterator[Alarm]:
    threshold = mesh.file.notify.thresholds.stopped_sweep
    if threshold is None:
        return
    periods = math.ceil(threshold / PERIOD)
    for sweep, schedule in registry.sweeps_of(mesh.table).items():
        source = MetricSource(
            namespace=METRICS_NAMESPACE,
            metric="Sweeps",
            statistic="Sum",
            dimensions={"namespace": mesh.namespace, "actor": sweep},
        )
        yield Alarm(
            name=f"{sweep}-stopped",
            description=f"{sweep} does not finish its sweeps: {schedule.undone(mesh.table)}. Its log has the cause: "
            + mesh.addresses.log_group_name(sweep),
            sources=(source,),
            threshold=1,
            periods=(periods, periods),
            needs_data=True,
        )


def _see(mesh: Mesh, graph: str) -> str:
    return f"See the graph '{graph}' of the dashboard asya-{mesh.namespace}."


def _of_the_mesh(mesh: Mesh, metric: str, statistic: str) -> MetricSource:
    dimensions = {"namespace": mesh.namespace}
    return MetricSource(namespace=METRICS_NAMESPACE, metric=metric, statistic=statistic, dimensions=dimensions)


def _over(function: str, count: int) -> str:
    """Return metric math over the metrics m0, m1 and so on."""
    return f"{function}([{', '.join(f'm{number}' for number in range(count))}])"


def _groups(actors: Iterable[str]) -> Iterator[list[str]]:
    remaining = list(actors)
    for start in range(0, len(remaining), MAX_METRICS):
        yield remaining[start : start + MAX_METRICS]
