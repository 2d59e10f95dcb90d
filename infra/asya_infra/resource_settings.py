"""The settings of queues and tables, as the stacks and `asya dev` create them (`protocol §4`).

Each table has the keys `pk` and `sk`.
"""

import math
from dataclasses import dataclass

from asya import registry
from asya.protocol.mesh_table import MeshTable
from asya_infra import timings


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


def actor_queue(name: str, mesh: MeshTable) -> QueueSettings:
    """Return the settings of an actor's queue. A function without user code has a timeout and a batch of its own."""
    actor, function = mesh.actors[name], registry.function_of(name, mesh)
    timeout = function.timeout or timings.function_timeout(actor.timeout, actor.batch.size)
    window = math.ceil(actor.batch.window) if function.queues is None else function.queues.window
    return QueueSettings(timeout, actor.queue_receives, window=window)


def system_queues(mesh: MeshTable) -> dict[str, QueueSettings]:
    """Return the settings of the queues that belong to no actor, by the name of the queue."""
    return {
        name: QueueSettings(
            function.timeout,
            queues.receives,
            window=queues.window,
            retention_days=queues.retention_days,
            has_envelopes=queues.has_envelopes,
        )
        for name, (function, queues) in registry.queues_of(mesh).items()
    }
