"""Late copies: messages of a hop whose task has paused at this position or a later one (`protocol §5.4`).

A task that pauses at an epoch has sent frame 0 of every hop up to it, because the id travels with frame 0. A message of such a
hop is therefore a duplicate. It must not send frame 0 or an end of its id again: the task may wait for an answer, or go on after
one. Later frames may be missing, if the first run died between them; they have ids of their own.
"""

from asya.function.hop import Hop
from asya.tasks.task_state import TaskState


def is_late_copy(hop: Hop, state: TaskState | None) -> bool:
    """Whether the hop comes before the task's last pause; the pause itself does not, because it may be unfinished."""
    return state is not None and _is_before(hop, state) and not finishes_pause(hop, state)


def finishes_pause(hop: Hop, state: TaskState | None) -> bool:
    """Whether this is the pause actor of the task's last pause, so that the message completes what a crash left out."""
    if state is None or not hop.spec.pauses:
        return False
    return state.pause_epoch == hop.envelope.route.position and _is_before(hop, state)


def comes_before_pause(generation: int, position: int, state: TaskState | None) -> bool:
    """Whether a hop comes before the task's last pause, or is that pause."""
    if state is None or state.pause_epoch is None or state.generation != generation:
        return False
    return position <= state.pause_epoch


def _is_before(hop: Hop, state: TaskState) -> bool:
    return comes_before_pause(hop.envelope.generation, hop.envelope.route.position, state)
