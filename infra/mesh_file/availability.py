"""What a mesh file may already say although the mesh cannot do it yet. Emptying a set here lifts its refusal."""

from collections.abc import Iterator

from asya.protocol import names
from infra.mesh_file.checks.context import Finding
from infra.mesh_file.mesh_model import MeshFile

ROUTABLE_LATER = names.ROUTABLE_CREW
KINDS_LATER = frozenset({"fan_in", "pause"})


def unavailable(mesh: MeshFile) -> Iterator[Finding]:
    """The places of a valid mesh that cannot be deployed yet."""
    for tool, section in mesh.tools.items():
        yield from _route(section.route, ("tools", tool, "route"))
    yield from _route(mesh.sink.hooks, ("sink", "hooks"))
    for name, actor in mesh.actors.items():
        if actor.kind in KINDS_LATER:
            yield ("actors", name, "kind"), f"kind: {actor.kind} is not available yet"
        yield from _route(actor.can_send_to or (), ("actors", name, "can_send_to"))
        for policy, policy_section in actor.resiliency.policies.items():
            place = ("actors", name, "resiliency", "policies", policy, "then_route")
            yield from _route(policy_section.then_route or (), place)
        if actor.resiliency.circuit_breaker is not None:
            yield ("actors", name, "resiliency", "circuit_breaker"), "circuit breakers are not available yet"
    if mesh.gateway.jwt is not None:
        yield ("gateway", "jwt"), "JWT is not available yet; the gateway takes signed requests (IAM)"
    if mesh.gateway.streaming != "buffered":
        yield ("gateway", "streaming"), f"{mesh.gateway.streaming} is not available yet; leave it at buffered"


def _route(route: tuple[str, ...], place: tuple[str, ...]) -> Iterator[Finding]:
    for index, actor in enumerate(route):
        if actor in ROUTABLE_LATER:
            yield (*place, index), f"{actor} is not available yet"
