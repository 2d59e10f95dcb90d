"""The route an envelope carries, and its one way forward: the shift (`protocol §1`)."""

from collections.abc import Iterable

import msgspec

_WEIGHTS = {"received": 30, "processing": 45, "completed": 100}
HIGHEST_BEFORE_END = 99


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """`prev` are done, oldest first; `curr` must process it now (`""` = end of route); `next` are still to come."""

    prev: tuple[str, ...]
    curr: str
    next: tuple[str, ...]

    @property
    def position(self) -> int:
        """The number of hops done; with id and generation it names this hop."""
        return len(self.prev)

    def shifted(self, next_actors: Iterable[str] | None = None) -> "Route":
        """The route after `curr` is done, with `next` as the handler left it (unchanged if None)."""
        ahead = self.next if next_actors is None else tuple(next_actors)
        return Route((*self.prev, self.curr), ahead[0] if ahead else "", ahead[1:])


def progress_percent(route: Route, status: str) -> int:
    """`floor(100·(len(prev)+w) / (len(prev)+1+len(next)))`, at most 99; route as it was before the shift.

    Args:
        route: the hop's route, `next` as left for frame 0.
        status: received, processing or completed.
    """
    hops = len(route.prev) + 1 + len(route.next)
    return min(HIGHEST_BEFORE_END, (100 * len(route.prev) + _WEIGHTS[status]) // hops)
