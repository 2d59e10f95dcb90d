"""Where an actor may send: what its permissions, and the sidecar's own check, are made from (`protocol §1`).

Declared with `can_send_to`, else read from the routes of the tools and of the policies. Free to send to every actor of the
mesh is one that stands in no tool's route, because routes made at run time are what it is there for; one that is followed by a
fan-in actor, because whom it fans out to stands in its code; and a fan-in actor, because the merged envelope goes on along any
origin's route.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from asya.protocol import names
from asya_infra.mesh_file.mesh_model import MeshFile

EVERYWHERE: frozenset[str] = frozenset({"*"})


def targets(mesh: MeshFile, actor: str) -> frozenset[str]:
    """The actors that this one may send to beside itself and the mesh's own; `EVERYWHERE` is no set of names."""
    if actor == names.INDEX:
        return frozenset()
    section = mesh.actors.get(actor)
    if section is not None and section.can_send_to is not None:
        return EVERYWHERE if section.can_send_to == ("*",) else frozenset(section.can_send_to)
    fan_ins = {names.FAN_IN, *(name for name, other in mesh.actors.items() if other.kind == "fan_in")}
    tool_routes = [tool.route or (name,) for name, tool in mesh.tools.items()]
    if section is None or actor in fan_ins or not any(actor in route for route in tool_routes):
        return EVERYWHERE
    if fan_ins & set(_successors(actor, tool_routes)):
        return EVERYWHERE
    detours = [
        policy.then_route or () for section in mesh.actors.values() for policy in section.resiliency.policies.values()
    ]
    own_detours = [policy.then_route[0] for policy in section.resiliency.policies.values() if policy.then_route]
    # Any actor may be the last one that a slice passes.
    return frozenset([*own_detours, *_successors(actor, [*tool_routes, *detours]), *(fan_ins - {names.FAN_IN})])


def _successors(actor: str, routes: Iterable[Sequence[str]]) -> Iterable[str]:
    return [after for route in routes for before, after in pairwise(route) if before == actor]
