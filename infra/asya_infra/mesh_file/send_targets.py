"""The actors that an actor may send to, for its permissions and for the sidecar's check (`protocol §1`).

The key `can_send_to` declares them. By default they follow from the routes of tools and policies. Three kinds of actor may
send to every actor by default: an actor in no tool's route, which serves routes made at run time; an actor before a fan-in
actor, whose code decides the route of the slices; and a fan-in actor, which continues the route of any origin.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from asya.protocol import names
from asya_infra.mesh_file.mesh_model import MeshFile

ALL_ACTORS: frozenset[str] = frozenset({"*"})


def send_targets(mesh: MeshFile, actor: str) -> frozenset[str]:
    """Return the actors that an actor may send to, beside itself and the crew; `ALL_ACTORS` stands for every actor."""
    if actor == names.INDEX:
        return frozenset()
    section = mesh.actors.get(actor)
    if section is not None and section.can_send_to is not None:
        return ALL_ACTORS if section.can_send_to == ("*",) else frozenset(section.can_send_to)
    fan_ins = {names.FAN_IN, *(name for name, other in mesh.actors.items() if other.kind == "fan_in")}
    tool_routes = [tool.route or (name,) for name, tool in mesh.tools.items()]
    if section is None or actor in fan_ins or not any(actor in route for route in tool_routes):
        return ALL_ACTORS
    if fan_ins & set(_successors(actor, tool_routes)):
        return ALL_ACTORS
    then_routes = [
        policy.then_route or () for section in mesh.actors.values() for policy in section.resiliency.policies.values()
    ]
    own_then = [policy.then_route[0] for policy in section.resiliency.policies.values() if policy.then_route]
    # Any actor may be the last one before a fan-in actor.
    return frozenset([*own_then, *_successors(actor, [*tool_routes, *then_routes]), *(fan_ins - {names.FAN_IN})])


def _successors(actor: str, routes: Iterable[Sequence[str]]) -> Iterable[str]:
    return [after for route in routes for before, after in pairwise(route) if before == actor]
