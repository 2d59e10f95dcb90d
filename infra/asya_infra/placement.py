"""Assigns actors to stacks (shards). A new or removed actor never moves another one."""

import hashlib

MOST_SHARDS = 8

# The shard of the crew and the system functions.
CREW_SHARD = 0


def shard_of(actor: str, shards: int) -> int:
    """Return the shard of an actor's queue and function.

    Never change the hash: another shard moves a queue and loses its messages.

    Args:
        actor: The name of the actor.
        shards: The number of shards of the mesh.
    """
    return int.from_bytes(hashlib.sha256(actor.encode()).digest()[:8], "big") % shards


def queues_part(shard: int) -> str:
    """Return the last part of the name of the stack with the queues of a shard."""
    return f"queues-{shard}"


def functions_part(shard: int) -> str:
    """Return the last part of the name of the stack with the functions of a shard."""
    return f"functions-{shard}"
