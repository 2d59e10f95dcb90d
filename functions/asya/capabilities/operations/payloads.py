"""Which payloads of a task are kept: before and after each hop (`protocol §13`, payloads).

A copy of an envelope is the payload before the hop at its position, so it is also the payload after the hop before. The result of
a succeeded task is the payload after its last hop.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Route

TEXT_LIMIT = 256 * 1024
"""Bytes of a payload's text in an answer; the rest is cut."""
READ_LIMIT = 16 * 1024 * 1024
"""Bytes of the largest object that is read; of a larger one the answer has the address alone."""

CopyKind = Literal["input", "dead_letter", "checkpoint", "failure"]
_PREFERENCE: tuple[CopyKind, ...] = ("failure", "checkpoint", "dead_letter", "input")
_LONGEST_NUMBER = 6


class KeptHop(msgspec.Struct, frozen=True, kw_only=True):
    """A hop with a kept payload.

    Attributes:
        hop: its position in the route.
        actor: the one that has kept the payload as its input; else its name in the route, empty if unknown.
        before, after: whether the payload before or after the hop is kept.
        size: the bytes of the kept object, the one before the hop if there is one.
        copy: where the payload before the hop is from. A replay may start at an `input` and at a `checkpoint`; None without one.
    """

    hop: int
    actor: str
    generation: int
    before: bool
    after: bool
    size: int
    copy: CopyKind | None = None


class KeptHops(msgspec.Struct, frozen=True, kw_only=True):
    """The hops of a task with kept payloads, first to last."""

    items: list[KeptHop]


class PayloadText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kept payload.

    Attributes:
        text: JSON, as it was stored.
        uri: the object that holds it: the kept envelope, or the payload itself if that was too large for a message.
        size: the bytes of the payload; those of the object if it is too large to be read.
        truncated: whether the text is cut.
        problem: why the payload cannot be read.
    """

    text: str
    uri: str
    size: int
    truncated: bool = False
    problem: str | None = None


class HopPayloads(msgspec.Struct, frozen=True, kw_only=True):
    """The payloads before and after one hop; None if they are not kept."""

    hop: int
    actor: str
    generation: int
    before: PayloadText | None
    after: PayloadText | None


@dataclass(frozen=True, slots=True)
class Copy:
    """A stored envelope.

    Attributes:
        generation: None for a checkpoint, whose key has none.
        size: bytes.
        actor: the actor of an input, as its key says; empty for other copies.
    """

    uri: str
    size: int
    kind: CopyKind = "input"
    generation: int | None = None
    actor: str = ""


@dataclass(frozen=True, slots=True)
class Copies:
    """The stored envelopes of a task.

    Attributes:
        before: the copy before each hop, by position.
        result: the result of a succeeded task.
        last: the position of the hop that the result follows.
    """

    before: Mapping[int, Copy] = field(default_factory=dict)
    result: Copy | None = None
    last: int = -1

    @property
    def hops(self) -> list[int]:
        """The positions with a kept payload, in order."""
        after = {position - 1 for position in self.before if position} | ({self.last} if self.result else set())
        return sorted(hop for hop in after | set(self.before) if self.before.get(hop) or self.after(hop))

    def after(self, hop: int) -> Copy | None:
        """The copy after a hop; None also if the kept one is of an earlier generation than the one before the hop."""
        if self.result is not None and hop == self.last:
            return self.result
        own, following = self.before.get(hop), self.before.get(hop + 1)
        if own is None or following is None or own.generation is None or following.generation is None:
            return following
        return following if following.generation >= own.generation else None

    def actor_at(self, hop: int, route: Route | None) -> str:
        """The actor of a hop: the one that has kept its input, else the one in the route; empty if nothing tells."""
        own = self.before.get(hop)
        return (own.actor if own is not None else "") or (route.actor_at(hop) if route is not None else "")

    @property
    def last_before(self) -> Copy:
        """The copy of the last hop, to tell the route; an input only if there is nothing else, because its actor writes it."""
        return self.before[max(self.before, key=lambda hop: (self.before[hop].kind != "input", hop))]


def choose_copies(found: Iterable[tuple[int, Copy]]) -> dict[int, Copy]:
    """Choose one copy for each position: of the latest generation, and an input rather than another copy."""
    chosen: dict[int, Copy] = {}
    for position, copy in found:
        known = chosen.get(position)
        if known is None or _rank(copy) > _rank(known):
            chosen[position] = copy
    return chosen


def _rank(copy: Copy) -> tuple[int, int]:
    return (-1 if copy.generation is None else copy.generation, _PREFERENCE.index(copy.kind))


def last_hop(route: Route) -> int:
    """The position of the last hop of an ended route; -1 without one."""
    return route.position if route.curr else route.position - 1


def kept_hops(copies: Copies, route: Route | None) -> list[KeptHop]:
    """List the hops with kept payloads.

    Args:
        route: the task's route, for the names of the actors; None if it is unknown.
    """
    kept = []
    for hop in copies.hops:
        before, after = copies.before.get(hop), copies.after(hop)
        named = before or after
        assert named is not None
        kept.append(
            KeptHop(
                hop=hop,
                actor=copies.actor_at(hop, route),
                generation=named.generation or 0,
                before=before is not None,
                after=after is not None,
                size=named.size,
                copy=before.kind if before is not None else None,
            )
        )
    return kept


def read_hop(text: str, copies: Copies) -> int:
    """Read the position in a call for one hop's payloads.

    Raises:
        ApiError: 400 if the hop is no number, 404 if no payload of the hop is kept.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
        raise ApiError(400, "invalid_field", "hop must be the position of a hop: 0 is the first", "hop")
    hop = int(text)
    if hop not in copies.hops:
        listed = ", ".join(map(str, copies.hops)) or "none"
        raise ApiError(404, "not_found", f"no payload of hop {hop} is kept; kept hops: {listed}", "hop")
    return hop


def payload_text(payload: bytes, uri: str) -> PayloadText:
    """Return a payload, cut to `TEXT_LIMIT` bytes."""
    text = payload[:TEXT_LIMIT].decode("utf-8", "ignore" if len(payload) > TEXT_LIMIT else "replace")
    return PayloadText(text=text, uri=uri, size=len(payload), truncated=len(payload) > TEXT_LIMIT)
