"""The attempts at a task's hops, with the steps that reports prove (`protocol §13`, `GET …/events`)."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from asya.gateway.streams.stream_cursor import AttemptKey
from asya.protocol.events import Progress
from asya.protocol.hops import HopRecord
from asya.protocol.route import Route, progress_percent
from asya.tasks.view import TaskView

STEPS: tuple[Progress, ...] = ("received", "processing", "completed")


@dataclass(frozen=True, slots=True)
class HopAttempt:
    """One attempt at a hop.

    Attributes:
        done: The number of its steps that happened.
        times: The time of each of these steps.
        sources: The hop record that describes each of these steps.
    """

    key: AttemptKey
    done: int
    times: tuple[str, ...]
    sources: tuple[HopRecord, ...]

    def percent(self, step: int) -> int:
        """Return the progress of the task at a step."""
        position, _ = self.key
        source = self.sources[step]
        # Only the length of `prev` counts.
        return progress_percent(Route(("",) * position, source.name, source.next), STEPS[step])

    def route(self, step: int) -> Route | None:
        """Return the route at a step; None if its record does not hold the earlier actors."""
        source = self.sources[step]
        return Route(source.prev, source.name, source.next) if source.prev is not None else None


def group_attempts(generation: int, hops: Iterable[HopRecord]) -> Iterator[HopAttempt]:
    """Yield the attempts of one generation, first to last.

    A step proves the steps before it, also when their reports are missing. A missing time is that of the next step.
    """
    steps = (hop for hop in hops if hop.generation == generation and hop.stage != "problem")
    of_generation = sorted(steps, key=lambda hop: hop.key)
    for key, records in groupby(of_generation, key=lambda hop: hop.key):
        by_progress = sorted(records, key=_step_count)
        last = by_progress[-1]
        done = _step_count(last)
        times: list[str] = []
        sources: list[HopRecord] = []
        for step in reversed(range(done)):
            time, source = min(
                ((time, hop) for hop in by_progress if (time := _times(hop)[step])),
                key=lambda reported: reported[0],
                default=(times[-1] if times else last.at, sources[-1] if sources else last),
            )
            times.append(time)
            sources.append(source)
        yield HopAttempt((key.position, key.attempt), done, tuple(reversed(times)), tuple(reversed(sources)))


def has_unfinished_hops(task: TaskView, hops: Collection[HopRecord]) -> bool:
    """Return whether a task succeeded before all its hops were reported as completed.

    The missing reports are then still on their way.
    """
    if task.status != "succeeded" or task.route is None:
        return False
    last = len(task.route.prev) - (0 if task.route.curr else 1)
    positions = {hop.position for hop in hops}
    completed = {hop.position for hop in hops if hop.completed_at}
    # A redriven task starts in the middle of its route.
    return not completed.issuperset(range(min(positions, default=last), last + 1))


def _times(hop: HopRecord) -> tuple[str | None, ...]:
    return (hop.received_at, hop.processing_at, hop.completed_at)


def _step_count(hop: HopRecord) -> int:
    return max((number for number, time in enumerate(_times(hop), 1) if time), default=1)
