"""The queues of a mesh, as the stacks and `asya dev` create them (`protocol §4`)."""

import math
from dataclasses import dataclass

from asya.protocol import names
from asya.protocol.mesh_table import QUEUE_RECEIVES, Actor, MeshTable
from asya_infra import timings

_SYSTEM_TIMEOUTS = {
    "spark": timings.ENQUEUE_TIMEOUT,
    "fan_in": timings.FAN_IN_TIMEOUT,
    "pause": timings.PAUSE_TIMEOUT,
    "wait": timings.PAUSE_TIMEOUT,
    "crew": timings.CREW_TIMEOUT,
}
# The batch of a heavy actor is about job runs, and other system functions have no window.
_SYSTEM_WINDOWS = {"spark": timings.ENQUEUE_WINDOW, "fan_in": 0, "pause": 0, "wait": 0, "crew": 0}


@dataclass(frozen=True)
class QueueSettings:
    """The settings of a queue.

    Attributes:
        function_timeout: seconds of the function that consumes it.
        max_receives: receives before a message becomes a dead letter.
        window: the window of the event source mapping in seconds.
        retention_days: how long the queue keeps a message.
        has_envelopes: whether its dead letters are envelopes, which the DLQ function ends.
    """

    function_timeout: int
    max_receives: int
    window: int = 0
    retention_days: int = timings.QUEUE_RETENTION_DAYS
    has_envelopes: bool = True

    @property
    def visibility_timeout(self) -> int:
        """The visibility timeout in seconds."""
        return timings.visibility_timeout(self.function_timeout, self.window)


def actor_queue(actor: Actor) -> QueueSettings:
    """Return the settings of an actor's queue."""
    own = timings.function_timeout(actor.timeout, actor.batch.size)
    timeout = _SYSTEM_TIMEOUTS.get(actor.kind, own)
    window = _SYSTEM_WINDOWS.get(actor.kind, math.ceil(actor.batch.window))
    return QueueSettings(timeout, actor.queue_receives, window=window)


def system_queues(table: MeshTable) -> dict[str, QueueSettings]:
    """Return the settings of the queues that belong to no actor, by the name of the queue."""
    reports = QueueSettings(
        timings.REPORTS_TIMEOUT,
        timings.REPORTS_MAX_RECEIVES,
        retention_days=timings.REPORTS_RETENTION_DAYS,
        has_envelopes=False,
    )
    queues = dict.fromkeys(names.REPORT_QUEUES, reports)
    if table.tools:
        queues[names.PUSH] = QueueSettings(timings.PUSH_TIMEOUT, timings.PUSH_MAX_RECEIVES)
    if table.triggers:
        queues[names.TRIGGERS] = QueueSettings(timings.TRIGGERS_TIMEOUT, QUEUE_RECEIVES)
    if any(actor.kind == "spark" for actor in table.actors.values()):
        queues[names.DISPATCH] = QueueSettings(timings.DISPATCH_TIMEOUT, QUEUE_RECEIVES)
        queues[names.COMPLETION] = QueueSettings(timings.COMPLETION_TIMEOUT, QUEUE_RECEIVES)
    return queues
