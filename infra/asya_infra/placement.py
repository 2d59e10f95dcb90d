"""Which stack holds which actor. Adding or removing an actor moves no other, ever."""

import hashlib

# Fixed for good: another number would move queues, and with them their messages. With five resources an actor and
# 500 a stack there is room for some 500 actors.
SHARDS = 8

# Where the mesh's own actors and functions are.
CREW_SHARD = 0


def shard_of(actor: str) -> int:
    """The number of the stacks that an actor's queue and function are in."""
    return int.from_bytes(hashlib.sha256(actor.encode()).digest()[:8], "big") % SHARDS
