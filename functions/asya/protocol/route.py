"""The route of an envelope, and the shift that moves it forward (`protocol §1`)."""

from collections.abc import Iterable

import msgspec

from asya.protocol import names

_WEIGHTS = {"received": 30, "processing": 45, "completed": 100}
HIGHEST_BEFORE_END = 99


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A route: the actors that are done (oldest first), the actor at work, and the actors ahead.

    An empty `curr` marks the end of the route.
    """

    prev: tuple[str, ...]
    curr: str
    next: tuple[str, ...]

    @property
    def position(self) -> int:
        """The number of hops done. Id, generation and position together name one hop."""
        return len(self.prev)

    def shifted(self, next_actors: Iterable[str] | None = None) -> "Route":
        """The route after `curr` is done; `next_actors` replaces `next` unless it is None."""
        ahead = self.next if next_actors is None else tuple(next_actors)
        return Route((*self.prev, self.curr), ahead[0] if ahead else "", ahead[1:])


UNKNOWN_HOP = Route((), names.SUMP, ())
"""The route of a failure whose hop is unknown: its message was no envelope, or had no room for its route."""


def progress_percent(route: Route, status: str) -> int:
    """The progress of a task in percent, at most 99: `floor(100·(len(prev)+w) / (len(prev)+1+len(next)))`.

    Args:
        route: the route of the hop before the shift, with `next` as left for frame 0.
        status: received, processing or completed; it selects the weight `w`.
    """
    hops = len(route.prev) + 1 + len(route.next)
    return min(HIGHEST_BEFORE_END, (100 * len(route.prev) + _WEIGHTS[status]) // hops)
