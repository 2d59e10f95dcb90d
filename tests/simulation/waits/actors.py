"""Random wait actors."""

from random import Random

from asya.protocol.mesh_table import Actor, Batch
from asya.protocol.wait import Wait

NAMES = ("hold", "linger")


def wait_actors(random: Random) -> dict[str, Actor]:
    """Draw one or two wait actors, some of which hold nothing."""
    return {
        name: Actor(
            kind="wait",
            wait=Wait(seconds=random.choice((0.0, 20.0, 70.0, 400.0))),
            timeout=20.0,
            batch=Batch(size=random.choice((1, 3, 10))),
            max_receives=random.choice((3, 5, 5)),
        )
        for name in random.choice((NAMES, NAMES[:1]))
    }
