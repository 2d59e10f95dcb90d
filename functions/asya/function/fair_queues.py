"""Message groups of fair queues: the tenant of each message (mesh file, `fair_by`)."""

import hashlib
import re

from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor

# A valid message group id of SQS: 1 to 128 letters, digits and punctuation marks.
_GROUP = re.compile(r"[!-~]{1,128}")


def queue_group(envelope: Envelope, target: Actor) -> str | None:
    """The tenant of a message on the target's queue: the value of its `fair_by` header.

    A digest replaces a value that SQS refuses, so no header value blocks an envelope.
    """
    if target.fair_by is None:
        return None
    value = envelope.header(target.fair_by)
    if value is None or value == "":
        return None
    if isinstance(value, str) and _GROUP.fullmatch(value):
        return value
    return hashlib.sha256(bytes(envelope.headers[target.fair_by])).hexdigest()
