"""How far a task is, in percent, told from its route alone (`protocol §13`)."""

from asya.protocol.route import Route

_WEIGHTS = {"received": 30, "processing": 45, "completed": 100}
HIGHEST_BEFORE_END = 99


def progress_percent(route: Route, status: str) -> int:
    """`floor(100·(len(prev)+w) / (len(prev)+1+len(next)))`, at most 99; route as it was before the shift.

    Args:
        route: the hop's route, `next` as left for frame 0.
        status: received, processing or completed.
    """
    hops = len(route.prev) + 1 + len(route.next)
    return min(HIGHEST_BEFORE_END, (100 * len(route.prev) + _WEIGHTS[status]) // hops)
