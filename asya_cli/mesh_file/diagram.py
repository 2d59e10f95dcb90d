"""What a diagram of a mesh shows: its actors by kind, its tools, and the ways between them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from asya.protocol.names import END_ACTORS, SINK
from asya.registry import PRODUCT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya_infra.mesh_file.actor_model import ActorSection
    from asya_infra.mesh_file.mesh_model import MeshFile

WayKind = Literal["route", "slices", "sends", "policy", "hook"]


@dataclass(frozen=True)
class Node:
    """An actor or a tool.

    Attributes:
        key: Unique in the diagram; a tool may have the name of an actor.
        kind: `tool`, `light`, `heavy`, or the `kind` of the actor in the mesh file.
    """

    key: str
    name: str
    kind: str


@dataclass(frozen=True)
class Way:
    """A way from one node to another.

    Attributes:
        start, end: The keys of the nodes.
        kind: `route` along a tool, `slices` of a fan-out, `sends` by `can_send_to`, `policy` by `then_route`, `hook` of x-sink.
        label: The name of the policy.
    """

    start: str
    end: str
    kind: WayKind
    label: str = ""


@dataclass(frozen=True)
class Diagram:
    """The nodes and ways of a mesh, in the order of its file."""

    nodes: tuple[Node, ...]
    ways: tuple[Way, ...]


def diagram_of(mesh: MeshFile) -> Diagram:
    """Return the diagram of a mesh.

    An actor that a fan-in follows on the route of a tool fans out: its other ways carry slices. An actor without `can_send_to` may
    send to every actor, which the diagram leaves out.
    """
    routes = {(way.start, way.end) for way in _ways(mesh) if way.kind == "route"}
    ways = tuple(dict.fromkeys(way for way in _ways(mesh) if way.kind != "sends" or (way.start, way.end) not in routes))
    tools = {_tool_key(name): Node(_tool_key(name), name, "tool") for name in mesh.tools}
    names = dict.fromkeys((*mesh.actors, *(name for way in ways for name in (way.start, way.end))))
    nodes = (tools.get(name) or Node(name, name, _kind(name, mesh.actors.get(name))) for name in names)
    return Diagram(tuple(nodes), ways)


def _tool_key(name: str) -> str:
    return f"tool {name}"  # no name of an actor has a space


def _ways(mesh: MeshFile) -> Iterator[Way]:
    forks: set[str] = set()
    for name, tool in mesh.tools.items():
        for start, end in pairwise((_tool_key(name), *tool.route)):
            yield Way(start, end, "route")
            if _kind(end, mesh.actors.get(end)) == "fan_in":
                forks.add(start)
    for name, actor in mesh.actors.items():
        for target in actor.can_send_to or ():
            is_slice = name in forks and _kind(target, mesh.actors.get(target)) != "fan_in"
            yield Way(name, target, "slices" if is_slice else "sends")
        for policy, section in actor.resiliency.policies.items():
            for start, end in pairwise((name, *(section.then_route or ()))):
                yield Way(start, end, "policy", policy)
    yield from (Way(SINK, hook, "hook") for hook in mesh.sink.hooks)


def _kind(name: str, actor: ActorSection | None) -> str:
    if actor is None:
        return "end" if name in END_ACTORS else PRODUCT.crew_of_kinds.get(name, "light")
    return "heavy" if actor.spark is not None else actor.kind or "light"
