"""Checks that each actor in a route exists and is routable (`protocol §1`)."""

from collections.abc import Iterator, Sequence

from asya.protocol import names
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.problems import did_you_mean
from asya_infra.mesh_file.source import Location

ANY = "*"


def check_routes(context: Context) -> Iterator[Finding]:
    """Check that each actor in a route exists and may stand in a route."""
    mesh = context.mesh
    for tool, section in mesh.tools.items():
        if section.route:
            yield from _route(context, section.route, ("tools", tool, "route"))
        elif tool not in mesh.actors:
            yield ("tools", tool, "route"), f"missing, and there is no actor {tool!r} to use as the route"
    for trigger, trigger_section in mesh.triggers.items():
        yield from _route(context, trigger_section.route, ("triggers", trigger, "route"))
    yield from _route(context, mesh.sink.hooks, ("sink", "hooks"))
    for name, actor in mesh.actors.items():
        for policy, policy_section in actor.resiliency.policies.items():
            place: Location = ("actors", name, "resiliency", "policies", policy, "then_route")
            yield from _route(context, policy_section.then_route or (), place)
        if actor.can_send_to is not None and actor.can_send_to != (ANY,):
            yield from _route(context, actor.can_send_to, ("actors", name, "can_send_to"))


def _route(context: Context, route: Sequence[str], place: Location) -> Iterator[Finding]:
    known = [*context.mesh.actors, *names.ROUTABLE_CREW]
    for index, actor in enumerate(route):
        if actor == ANY and place[-1] == "can_send_to":
            yield (*place, index), f"{ANY!r} means every actor; remove it, or all others"
        elif not names.is_routable(actor):
            allowed = ", ".join(sorted(names.ROUTABLE_CREW))
            yield (*place, index), f"{actor!r} is reserved; a route may contain these actors of the mesh: {allowed}"
        elif actor not in known:
            yield (*place, index), f"there is no actor {actor!r}{did_you_mean(actor, known)}"
