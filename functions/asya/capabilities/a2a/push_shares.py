"""Bounds the time that notifications of one host, and of one owner, take from all others (`protocol §13.a2a.push.shares`).

A receiver may hold an execution for the limit of a notification, and an owner may have many such receivers. So each owner has
a share of time in each minute, and a smaller one at each host. Owners have no share of a host together: one of them could use
it up, and hold up what others send there. A notification reserves its time limit before it is sent, and what it did not
use comes back afterwards. The reservation of a process that dies ends with its minute.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from asya.function.nack import BlockedError
from asya.protocol.table_keys import SHARE_PREFIX

WINDOW = 60
"""Seconds of a window."""
HOST_SECONDS, OWNER_SECONDS = 120.0, 240.0
"""Seconds of a window that the notifications of one owner may take: those to one host, and all of them."""


class ShareUsedError(BlockedError):
    """The share of an owner is used up, at a host or in all; the notification waits on its queue."""


@dataclass(frozen=True, slots=True)
class Share:
    """The time of an owner in one window, at a host or in all.

    Attributes:
        pk, sk: the key of its item.
        seconds: the time that it has.
        of: whose it is, for the error: `of this owner to host a.example`.
    """

    pk: str
    sk: str
    seconds: float
    of: str


def shares(host: str, owner: str | None, now: datetime) -> tuple[Share, Share]:
    """The shares that a notification needs.

    Args:
        host: the host of the address. Its ports have one share.
        owner: the owner of the task; tasks without an owner have one share.
    """
    window = f"window#{int(now.timestamp()) // WINDOW}"
    return (
        Share(_key("host", f"{host.lower()}\n{owner or ''}"), window, HOST_SECONDS, f"of this owner to host {host}"),
        Share(_key("owner", owner or ""), window, OWNER_SECONDS, "of this owner"),
    )


def _key(kind: str, name: str) -> str:
    return f"{SHARE_PREFIX}{kind}#{hashlib.sha256(name.encode()).hexdigest()}"
