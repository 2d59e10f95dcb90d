"""The faults that a test plans: a process that dies, a message that comes twice, a handler or a call that fails."""

from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from asya.protocol import names
from asya.testing.services.faults import Fault, Faults


@dataclass
class PlannedFaults(Faults):
    """Faults by actor, each for its next occasions, and faults of calls; nothing else goes wrong.

    Attributes:
        namespace: that of the mesh.
        deaths: actor → how many batches are still to kill their process.
        interruptions: actor → how many calls are still to kill their process.
        copies: actor → how many messages SQS still delivers twice.
        failures: actor → the errors that its next calls raise.
        plans: the fault of a call of a service, by the service and by what the call does, such as `s3` and `PutObject held/a.json`.
            Each plan is asked about each call, and the first fault takes place.
    """

    namespace: str = ""
    deaths: Counter[str] = field(default_factory=Counter)
    interruptions: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    failures: dict[str, deque[Callable[[], BaseException]]] = field(default_factory=dict)

    plans: list[Callable[[str, str], Fault]] = field(default_factory=list)

    def draw(self, service: str, what: str, seconds: float) -> Fault:
        """See `Faults`."""
        planned = [plan(service, what) for plan in self.plans]
        return next((fault for fault in planned if fault is not Fault.NONE), None) or super().draw(
            service, what, seconds
        )

    def kills(self, actor: str) -> bool:
        """See `Faults`."""
        return _take(self.deaths, actor)

    def interrupts(self, actor: str) -> bool:
        """Whether this call of an actor kills its process."""
        return _take(self.interruptions, actor)

    def duplicates(self, queue: str, seconds: float) -> bool:
        """See `Faults`."""
        actor = next((name for name in self.copies if names.queue_name(self.namespace, name) == queue), None)
        return actor is not None and _take(self.copies, actor)

    def next_failure(self, actor: str) -> BaseException | None:
        """The error that this call of an actor raises; None for a call that runs."""
        waiting = self.failures.get(actor)
        return waiting.popleft()() if waiting else None


# What changes a queue, a bucket or a table.
WRITES = frozenset(
    (
        *("SendMessage", "SendMessageBatch", "PutObject", "DeleteObject"),
        *("put_item", "update_item", "delete_item", "batch_write_item", "transact_write_items"),
    )
)


@dataclass
class Death:
    """Kills the process at one of its writes; a plan of `PlannedFaults`.

    Attributes:
        at: the number of the write, from 1; 0 for none.
        is_after: whether the write still happens.
        writes: the operations that count.
        effects: the writes so far, one action each.
    """

    at: int = 0
    is_after: bool = False
    writes: Collection[str] = WRITES
    effects: list[str] = field(default_factory=list)

    def plan(self, _service: str, what: str) -> Fault:
        """The fault of a call."""
        action = what.partition(" ")[0]
        if action not in self.writes:
            return Fault.NONE
        self.effects.append(action)
        if len(self.effects) != self.at:
            return Fault.NONE
        return Fault.CRASH_AFTER if self.is_after else Fault.CRASH_BEFORE


def _take(counts: Counter[str], actor: str) -> bool:
    if not counts[actor]:
        return False
    counts[actor] -= 1
    return True
