"""What SQS asks of messages: limits, packing into requests, groups of fair queues (`protocol §4`, `fair_by`)."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from asya.protocol import headers
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import FAIR_BY_OWNER, Actor

MESSAGE_BYTES = 1024 * 1024
# SQS counts more than the body.
MESSAGE_MARGIN = 16 * 1024
BATCH_ENTRIES = 10
BATCH_BYTES = MESSAGE_BYTES
DELAY_SECONDS = 900

# Names the few refused characters: a class of all others takes ten times as long to compile.
_NON_XML_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def is_sendable(json_text: bytes) -> bool:
    """Whether SQS accepts this JSON text. SQS refuses U+FFFE and U+FFFF; JSON cannot hold the other refused characters."""
    return json_text.isascii() or _NON_XML_CHARACTER.search(json_text.decode("utf-8")) is None


def attribute_text(text: str) -> str:
    """The text as an attribute of a message may have it: characters that XML does not allow are replaced."""
    return _NON_XML_CHARACTER.sub("\ufffd", text)


QUEUE_RETENTION_DAYS = 4
"""How long the queue of an actor keeps a message; SQS would keep it for 14 days."""


class Sized(Protocol):
    """An item with a size."""

    @property
    def size(self) -> int:
        """The size of the item in a request, in bytes."""


Item = TypeVar("Item", bound=Sized)


def pack(items: Iterable[Item], *, count: int = BATCH_ENTRIES, size: int = BATCH_BYTES) -> Iterator[list[Item]]:
    """Split items into groups that fit into one request each. The order stays.

    Args:
        count: the maximum number of items in a group; the default is the limit of SendMessageBatch.
        size: the maximum bytes of a group; a larger item makes a group of its own.
    """
    group: list[Item] = []
    total = 0
    for item in items:
        if group and (len(group) == count or total + item.size > size):
            yield group
            group, total = [], 0
        group.append(item)
        total += item.size
    if group:
        yield group


# A valid message group id of SQS: 1 to 128 letters, digits and punctuation marks.
_GROUP = re.compile(r"[!-~]{1,128}")


def queue_group(envelope: Envelope, target: Actor) -> str | None:
    """The tenant of a message on the target's queue: who started the task, or the value of the header that `fair_by` names.

    A digest replaces a value that SQS refuses, so no header value blocks an envelope.
    """
    name = _tenant_header(envelope, target)
    if name is None:
        return None
    value = envelope.header(name)
    if isinstance(value, str) and _GROUP.fullmatch(value):
        return value
    return hashlib.sha256(bytes(envelope.headers[name])).hexdigest()


def proven_tenant(envelope: Envelope, target: Actor) -> str:
    """Who started the task, as the mesh has proved (`protocol §3.tenant`); empty if it has not, or the target does not ask."""
    name = _tenant_header(envelope, target) if target.fair_by == FAIR_BY_OWNER else None
    value = envelope.header(name) if name is not None else None
    return value if isinstance(value, str) else ""


def _tenant_header(envelope: Envelope, target: Actor) -> str | None:
    if target.fair_by is None:
        return None
    # A raw message has no other proof than its sender, which is its owner.
    names = (headers.TENANT, headers.OWNER) if target.fair_by == FAIR_BY_OWNER else (target.fair_by,)
    return next((name for name in names if envelope.header(name) not in (None, "")), None)
