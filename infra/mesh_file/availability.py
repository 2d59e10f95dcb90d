"""What a mesh file may already say although the mesh cannot do it yet: refused rather than ignored.

This is the one place to lift such a refusal: take the name out.
"""

from collections.abc import Iterator

from asya.protocol import names
from infra.mesh_file.checks.context import Finding
from infra.mesh_file.mesh_model import MeshFile
from infra.mesh_file.source import Location

ROUTABLE_LATER = names.ROUTABLE_CREW - {names.CHECKPOINT, names.FAN_IN}
KINDS_LATER = frozenset({"pause"})


def unavailable(mesh: MeshFile) -> Iterator[Finding]:
    """The places of a valid mesh that cannot be deployed yet."""
    for place, route in _routes(mesh):
        for index, actor in enumerate(route):
            if actor in ROUTABLE_LATER:
                yield (*place, index), f"{actor} is not available yet"
    for name, section in mesh.actors.items():
        if section.kind in KINDS_LATER:
            yield ("actors", name, "kind"), f"kind: {section.kind} is not available yet"
    if mesh.gateway.jwt is not None:
        yield ("gateway", "jwt"), "is not available yet; the gateway takes signed requests (IAM)"
    if mesh.gateway.streaming != "buffered":
        yield ("gateway", "streaming"), f"{mesh.gateway.streaming} is not available yet"


def _routes(mesh: MeshFile) -> Iterator[tuple[Location, tuple[str, ...]]]:
    """Every place that names actors, and whom it names."""
    for tool, section in mesh.tools.items():
        yield ("tools", tool, "route"), section.route
    yield ("sink", "hooks"), mesh.sink.hooks
    for name, actor in mesh.actors.items():
        yield ("actors", name, "can_send_to"), actor.can_send_to or ()
        for policy, policy_section in actor.resiliency.policies.items():
            place = ("actors", name, "resiliency", "policies", policy, "then_route")
            yield place, policy_section.then_route or ()
