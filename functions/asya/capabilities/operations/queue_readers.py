"""Decides whether a function reads the queue of an actor, and what starts it again if none does."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from asya.tasks.view import TaskView

_STOPPED = frozenset({"Disabled", "Disabling"})
"""States of a mapping that does not read. `Creating`, `Enabling` and `Updating` pass by themselves."""
_RESTORE = "Delete the stack that has the function, and deploy: CloudFormation does not see what was deleted by hand"


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """Why no function reads a queue, and how that is repaired.

    Attributes:
        reason: such as `event source mapping disabled`.
        repair: a command to type, or what to do.
    """

    reason: str
    repair: str


@dataclass(frozen=True, slots=True)
class Mapping:
    """The event source mapping of a queue: its id and its state, as Lambda names them."""

    uuid: str
    state: str


@dataclass(frozen=True, slots=True)
class FunctionState:
    """What Lambda knows of a function.

    Attributes:
        exists: whether the function is there.
        reserved: its reserved concurrency; None without one.
    """

    exists: bool = True
    reserved: int | None = None


def unread(mapping: Mapping | None, function: FunctionState, name: str) -> Unread | None:
    """Return why a queue is not read; None if it is.

    Args:
        mapping: the event source mapping of the queue; None if it has none.
        function: the function that reads it.
        name: the name of the function.
    """
    if not function.exists:
        return Unread(reason=f"the function {name} is missing", repair=_RESTORE)
    if mapping is None:
        return Unread(reason="event source mapping missing", repair=_RESTORE)
    if mapping.state in _STOPPED:
        return Unread(
            reason="event source mapping disabled",
            repair=f"aws lambda update-event-source-mapping --uuid {mapping.uuid} --enabled",
        )
    if function.reserved == 0:
        return Unread(
            reason="reserved concurrency of the function is 0",
            repair=f"aws lambda delete-function-concurrency --function-name {name}",
        )
    return None


def queues_of(tasks: Iterable[TaskView]) -> list[str]:
    """Return the actors on whose queues the envelopes of tasks may wait: where each was last, and where it goes next."""
    found: set[str] = set()
    for task in tasks:
        if task.status not in ("pending", "running"):
            continue
        if task.route is not None:
            found |= {task.route.curr, *task.route.next[:1]}
        if task.actor is not None:
            found.add(task.actor)
    return sorted(found - {""})
