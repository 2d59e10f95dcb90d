"""Where an actor may send: what its permissions, and the sidecar's own check, are made from (`protocol §1`).

Declared with `can_send_to`, else read from the routes of the tools and of the policies. An actor that stands in no tool's
route is free to send to every actor of the mesh: routes made at run time are what it is there for.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from infra.mesh_file.mesh_model import MeshFile

EVERYWHERE: frozenset[str] = frozenset({"*"})


def targets(mesh: MeshFile, actor: str) -> frozenset[str]:
    """The actors that this one may send to beside itself and the mesh's own; `EVERYWHERE` is no set of names."""
    declared = mesh.actors[actor].can_send_to
    if declared is not None:
        return EVERYWHERE if declared == ("*",) else frozenset(declared)
    tool_routes = [tool.route or (name,) for name, tool in mesh.tools.items()]
    if not any(actor in route for route in tool_routes):
        return EVERYWHERE
    detours = [
        policy.then_route or () for section in mesh.actors.values() for policy in section.resiliency.policies.values()
    ]
    own_detours = [
        policy.then_route[0] for policy in mesh.actors[actor].resiliency.policies.values() if policy.then_route
    ]
    return frozenset([*own_detours, *_successors(actor, [*tool_routes, *detours])])


def _successors(actor: str, routes: Iterable[Sequence[str]]) -> Iterable[str]:
    return [after for route in routes for before, after in pairwise(route) if before == actor]
