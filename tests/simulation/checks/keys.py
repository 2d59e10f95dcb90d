"""Checks idempotency keys (`protocol §13.start.idempotent`): one claim at a time, one task, and one time of its creation."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Item = Mapping[str, Any]
_RELEASED = 0.0


def key_problems(before: Item | None, after: Item, seconds: float, is_sent: Callable[[str], bool]) -> Iterator[str]:
    """Yield the violations of a write of a key.

    Args:
        seconds: the time of the write, in seconds since 1970.
        is_sent: whether a queue has accepted the envelope of a task.
    """
    task_id = after["task_id"]["S"]
    if "sent" in after and not is_sent(task_id):
        yield f"the key of {task_id} says that its message was sent, but no queue has accepted it"
    if before is None or float(before["expires_at"]["N"]) <= seconds:
        return
    if before["task_id"] != after["task_id"]:
        yield f"a key stood for {before['task_id']['S']} and stands for {task_id}"
    if "sent" in before and "sent" not in after:
        yield f"the key of {task_id} forgets that its message was sent"
    lease, next_lease = float(before["lease_until"]["N"]), float(after["lease_until"]["N"])
    # Of two processes that take a key over at the same moment, the second one writes what the first has written.
    if next_lease >= lease > seconds and "sent" not in after:
        yield f"the key of {task_id} was taken over {lease - seconds:.1f} s before its claim ends"
    if next_lease > lease and "sent" in before:
        yield f"the key of {task_id} was taken over after its message was sent"
    if before["created_at"] != after["created_at"] and lease != _RELEASED:
        yield f"the task {task_id} was created at {before['created_at']['S']} and again at {after['created_at']['S']}"
