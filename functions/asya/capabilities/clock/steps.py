"""Decides which steps of the clock run, in which order, and for how long (`protocol §11.clock`)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

STEPS = "ASYA_STEPS"
"""The variable with the steps of a mesh (`written`)."""
NAMED = "steps"
"""The key of an event that names steps: they run now, whether they are due or not."""
EARLY = timedelta(seconds=30)
"""EventBridge is not exact: a call may come some seconds before its minute is over."""
RESERVE = 5.0
"""Seconds at the end of an invocation that no step gets: for the log, and for the answer."""


class Step(msgspec.Struct, frozen=True):
    """A step, as the deployment passes it to the clock.

    Attributes:
        name: its name, which its lines and metrics have.
        entry_point: a module, and its attribute after the last dot.
        minutes: the time between two runs.
        seconds: what it may take.
    """

    name: str
    entry_point: str
    minutes: int
    seconds: float


class StepsError(ValueError):
    """What the clock is asked for is none of its steps; the message names them."""


def read_steps(text: str) -> tuple[Step, ...]:
    """Read the steps that a deployment has written (`written`).

    Raises:
        ValueError: the text is of another form.
    """
    return msgspec.json.decode(text, type=tuple[Step, ...])


def written(steps: Sequence[Step]) -> str:
    """Return steps as the variable of the function."""
    return msgspec.json.encode(steps).decode()


def due_steps(steps: Sequence[Step], started: Mapping[str, datetime], now: datetime) -> list[Step]:
    """Return the steps whose time has come, in the declared order.

    Args:
        started: when this process has started each step last. One that it never ran is due: only a new process asks so.
    """
    return [
        step
        for step in steps
        if step.name not in started or now - started[step.name] > timedelta(minutes=step.minutes) - EARLY
    ]


def named_steps(steps: Sequence[Step], named: Collection[str]) -> list[Step]:
    """Return the steps that a caller names, in the declared order.

    Raises:
        StepsError: one of them is unknown.
    """
    known = [step.name for step in steps]
    if unknown := sorted(set(named) - set(known)):
        raise StepsError(f"the clock has no step {unknown[0]!r}; it has: {', '.join(known) or 'none'}")
    return [step for step in steps if step.name in named]


def ordered(steps: Sequence[Step], fatal: Sequence[str]) -> list[Step]:
    """Return steps in the order in which they run: those that have ended a process come last, the latest of them at the end.

    So each of the others runs before the process may end again.
    """
    return sorted(steps, key=lambda step: fatal.index(step.name) if step.name in fatal else -1)


def share(step: Step, later: Sequence[Step], remaining: float) -> float:
    """Return the seconds that a step may take: its part of what an invocation has left.

    A deployment gives the function the time of all steps. So a step has at least its own seconds, unless those before it took
    longer than theirs.

    Args:
        later: the steps that run after it.
        remaining: the seconds until Lambda ends the invocation.
    """
    total = step.seconds + sum(each.seconds for each in later)
    return max(1.0, remaining - RESERVE) * step.seconds / total
