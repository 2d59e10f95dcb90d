"""The alarms of the two queues of reports: late reports, and reports that became dead letters."""

from collections.abc import Iterator

from asya.protocol import names
from asya_infra.constructs.observability.alarms import Alarm, queue_metric
from asya_infra.mesh import Mesh

_GUIDE = "See the row 'Reports' of the dashboard asya-{namespace}, and the log of x-reports."


def report_alarms(mesh: Mesh) -> Iterator[Alarm]:
    """Yield the alarms of each queue."""
    for queue in names.REPORT_QUEUES:
        yield from _delayed(mesh, queue)
        yield from _dead_letters(mesh, queue)


def _delayed(mesh: Mesh, name: str) -> Iterator[Alarm]:
    """Yield the alarm on the age of the oldest message.

    SQS leaves a message that was received three times out of this age. After some minutes of an outage no message counts. So
    a queue also counts as late if it holds messages and deletes none within a period.
    """
    threshold = mesh.file.notify.thresholds.delayed_reports
    if threshold is None:
        return
    queue = names.queue_name(mesh.namespace, name)
    what = "ends of tasks" if name == names.ENDS else "progress of tasks"
    yield Alarm(
        name=f"{name}-delayed",
        description=f"The {what} is shown late, and nothing is lost: the messages wait in {queue}. "
        + _GUIDE.format(namespace=mesh.namespace),
        sources=(
            queue_metric(queue, "ApproximateAgeOfOldestMessage", "Maximum"),
            queue_metric(queue, "ApproximateNumberOfMessagesVisible", "Minimum"),
            queue_metric(queue, "ApproximateNumberOfMessagesNotVisible", "Minimum"),
            queue_metric(queue, "NumberOfMessagesDeleted", "Sum"),
        ),
        # MAX over an array ignores a metric without data.
        expression=f"MAX([m0, IF(m3 == 0 AND m1 + m2 > 0, {threshold:.0f}, 0)])",
        threshold=threshold,
    )


def _dead_letters(mesh: Mesh, name: str) -> Iterator[Alarm]:
    threshold = mesh.file.notify.thresholds.dead_letters
    if threshold is None:
        return
    queue = names.dlq_name(mesh.namespace, name)
    yield Alarm(
        name=f"{name}-dead-letters",
        description=f"Reports could not be recorded and lie in {queue}. Repair the cause in the log of x-reports "
        f"(mesh asya-{mesh.namespace}), then run `asya dlq reports replay`.",
        sources=(queue_metric(queue, "ApproximateNumberOfMessagesVisible", "Maximum"),),
        threshold=threshold,
    )
