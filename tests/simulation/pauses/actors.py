"""Random pause actors and their questions."""

from random import Random

from asya.protocol.mesh_table import Actor, Batch
from asya.protocol.pause import Pause, PauseField

NAMES = ("x-pause", "approve")
# The answer in this field names the call that gave it.
BY = "by"


def pause_actors(random: Random) -> dict[str, Actor]:
    """Draw one or both pause actors, and x-resume."""
    names = random.choice((NAMES, NAMES[:1], NAMES[1:]))
    return {name: _pause_actor(random) for name in names} | {"x-resume": Actor(kind="crew")}


def _pause_actor(random: Random) -> Actor:
    return Actor(
        kind="pause",
        pause=Pause(prompt="Go on?", fields=random.choice(_QUESTIONS)),
        timeout=20.0,
        batch=Batch(size=random.choice((1, 3, 10))),
        max_receives=random.choice((3, 5, 5)),
    )


_QUESTIONS: tuple[tuple[PauseField, ...], ...] = (
    (),
    (PauseField(name=BY, type="string"),),
    (
        PauseField(name=BY, type="string", payload_key="/review/by"),
        PauseField(name="approved", type="boolean", default=True),
        PauseField(name="grade", type="number", required=False),
    ),
    # No payload has a place for this answer, so the envelope cannot pause.
    (PauseField(name=BY, type="string", payload_key="/value/by"),),
)
