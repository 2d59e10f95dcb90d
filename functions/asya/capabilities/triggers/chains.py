"""Bounds starts that follow from each other: a task, what it causes, and the task that this starts (`protocol §16.chain`).

The record of a started task says which triggers led to it. Only `x-triggers` writes that, so no message shortens or lengthens it.
"""

from collections.abc import Iterable

from asya.capabilities.triggers.messages import UnusableMessageError
from asya.protocol.task import StartedBy, TaskRecord

MOST_CHAINED = 16
"""Starts by triggers that may follow from each other."""


def led_by(cause: TaskRecord) -> tuple[str, ...]:
    """The triggers that led to what a root task causes, its own last; none for a task that no trigger has started."""
    started_by = cause.started_by
    if started_by is None or started_by.kind != "trigger" or started_by.name is None:
        return ()
    return (*started_by.after, started_by.name)


def longest(origins: Iterable[StartedBy]) -> tuple[str, ...]:
    """The longest of the chains that led to several occurrences."""
    return max((each.after for each in origins), key=len, default=())


def check_chain(trigger: str, after: tuple[str, ...]) -> None:
    """Check that a start may follow from so many others.

    Raises:
        UnusableMessageError: the triggers start each other, as it seems.
    """
    if len(after) < MOST_CHAINED:
        return
    others = [name for name in dict.fromkeys(after) if name != trigger]
    if trigger not in after:
        problem = f"{MOST_CHAINED} starts of {_listed(others)} lead to it, and no more may follow from each other"
    elif others:
        problem = (
            f"the triggers {_listed([trigger, *others])} start each other: {MOST_CHAINED} starts follow from each other"
        )
    else:
        problem = f"the trigger {trigger!r} starts itself: {MOST_CHAINED} starts follow from each other"
    raise UnusableMessageError(f"{problem}. Let their tasks write results, or send events, that start none of them")


def _listed(names: list[str]) -> str:
    return " and ".join(map(repr, names))
