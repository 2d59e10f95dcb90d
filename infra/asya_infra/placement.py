"""Assigns actors to stacks (shards). A new or removed actor never moves another one."""

import hashlib

# Never change this: another number would move queues with their messages. CloudFormation allows 500 resources in a
# stack, and an actor has five, so a mesh may have about 500 actors.
SHARDS = 8

# The shard of the crew and the system functions.
CREW_SHARD = 0


def shard_of(actor: str) -> int:
    """Return the shard of an actor's queue and function."""
    return int.from_bytes(hashlib.sha256(actor.encode()).digest()[:8], "big") % SHARDS
