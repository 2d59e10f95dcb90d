"""The reasons to refuse a deployment because of its queues and their actors."""

from dataclasses import dataclass
from datetime import timedelta

from asya_infra.deployment.heavy_backlog import HeavyBacklog
from asya_infra.deployment.queue_changes import RemovedQueue

# SQS refuses the name of a queue for this time after its deletion (QueueDeletedRecently).
BLOCKED = timedelta(seconds=60)


@dataclass(frozen=True)
class Problem:
    """A reason to refuse the deployment: the queue, and what to do."""

    queue: str
    message: str

    def __str__(self) -> str:
        return f"{self.queue}: {self.message}"


def not_empty(queue: RemovedQueue, messages: int) -> Problem:
    """Return the problem that a removed queue has messages."""
    redrive = f"`asya dlq redrive {queue.actor}`" if queue.name.endswith("-dlq") else "let the actor process them"
    count = "1 message" if messages == 1 else f"{messages} messages"
    return Problem(
        queue.name,
        f"the deployment removes the actor {queue.actor}, and this queue has about {count} that would be lost. "
        f"Restore the actor in the mesh file, take it out of all routes, and deploy; empty the queue ({redrive}); then "
        f"remove the actor. To lose the messages: --drop-messages {queue.actor}",
    )


def not_finished(queue: str, actor: str, backlog: HeavyBacklog) -> Problem:
    """Return the problem that a removed heavy actor has a backlog."""
    return Problem(
        queue,
        f"the deployment removes the heavy actor {actor}, which has {backlog}. Its runs would be cut off, and its envelopes "
        f"would never end. Restore the actor in the mesh file, take it out of all routes, and deploy; when its runs have "
        f"ended, remove the actor. To lose the envelopes: --drop-messages {actor}",
    )


def becomes_light(queue: str, actor: str, backlog: HeavyBacklog) -> Problem:
    """Return the problem that a heavy actor with a backlog becomes light."""
    return Problem(
        queue,
        f"the deployment changes the actor {actor} from heavy to light, and it has {backlog}. Its runs would be cut off, and "
        f"its envelopes would never end. Keep the actor heavy in the mesh file, take it out of all routes, and deploy; when "
        f"its runs have ended, change it. To leave the envelopes: --drop-messages {actor}",
    )


def deleted_recently(name: str, age: timedelta) -> Problem:
    """Return the problem that SQS still refuses the name of a queue."""
    seconds = max(1, round((BLOCKED - age).total_seconds()))
    return Problem(
        name,
        "this queue was deleted less than a minute ago, and SQS refuses its name for 60 seconds (QueueDeletedRecently). "
        f"Deploy again in {seconds} s",
    )
