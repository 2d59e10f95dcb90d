"""Whose message it is, for queues that are fair between tenants (mesh file, `fair_by`)."""

import hashlib
import re

from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor

# What SQS takes for a message group: up to 128 letters, digits and punctuation marks.
_GROUP = re.compile(r"[!-~]{1,128}")


def queue_group(envelope: Envelope, target: Actor) -> str | None:
    """The tenant that a message counts for on the target's queue: the value of its `fair_by` header.

    A value that SQS would not take is replaced by its digest: no header may keep an envelope from being sent.
    """
    if target.fair_by is None:
        return None
    value = envelope.header(target.fair_by)
    if value is None or value == "":
        return None
    if isinstance(value, str) and _GROUP.fullmatch(value):
        return value
    return hashlib.sha256(bytes(envelope.headers[target.fair_by])).hexdigest()
