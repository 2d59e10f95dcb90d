"""Says which deadline an envelope has missed, and what gives it more time (`protocol §5.11`).

The limit alone misleads: it is what was left of the deadline when the call began.
"""

from asya.function.hop import Hop
from asya.protocol.times import format_duration, parse_time


def during_the_call(hop: Hop) -> str:
    """What follows `Runtime did not respond within {limit}` if the deadline has set the limit."""
    allowed, tool = _origin(hop)
    if allowed is None:
        return ", which was left until the deadline of the task"
    if tool is None:
        return f", which was left of the {format_duration(allowed)} until the deadline of the task; start it with a later one"
    more = f"raise the timeout of the tool {tool} in the mesh file, or make the call of {hop.actor} shorter"
    return f", which was left of the {format_duration(allowed)} until the deadline of the task (tool {tool}); {more}"


def before_the_call(hop: Hop) -> str:
    """What follows `Deadline … passed before {actor} started`."""
    allowed, tool = _origin(hop)
    if allowed is None:
        return ""
    if tool is None:
        return f", {format_duration(allowed)} after the start of the task; start it with a later one"
    return f", {format_duration(allowed)} after the start of the task; raise the timeout of the tool {tool} in the mesh file"


def _origin(hop: Hop) -> tuple[float | None, str | None]:
    """The seconds that the task had in all, and the tool that gave them, as far as route and timeout tell.

    An envelope does not name its tool.
    """
    created = hop.envelope.status.created_at if hop.envelope.status is not None else None
    if hop.deadline is None or created is None:
        return None, None
    allowed = (hop.deadline - parse_time(created)).total_seconds()
    route = hop.envelope.route
    first = (*route.prev, route.curr)[0]
    tools = hop.mesh.tools.items()
    found = [name for name, tool in tools if tool.route[0] == first and abs(tool.timeout - allowed) < 1]
    return allowed, found[0] if len(found) == 1 else None
