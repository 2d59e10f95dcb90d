"""`asya graph`: draws the actors of a mesh file and the ways between them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.output.text import echo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya_infra.mesh_file.actor_model import ActorSection
    from asya_infra.mesh_file.mesh_model import MeshFile

_SHAPES = {
    "light": ("[", "]"),
    "heavy": ("[[", "]]"),
    "pause": ("{{", "}}"),
    "fan_in": ("[/", "\\]"),
    "end": ("([", "])"),
}
"""How Mermaid draws the kinds of actors: box, double box, hexagon, trapezoid, stadium."""


def graph(
    mesh: Annotated[Path, typer.Option("--mesh", help="The mesh file.")] = Path("mesh.yaml"),
    *,
    stage: Annotated[str, typer.Option("--stage", help="A stage of the mesh file.")] = "",
) -> None:
    """Print a diagram of a mesh in Mermaid, which GitHub and many editors show.

    Tools lead along their routes. Other ways are those of `can_send_to` and, dashed, of `then_route` and hooks. An actor without
    `can_send_to` may send to every actor, which is not drawn.
    """
    from asya_infra.mesh_file import MeshFileError, load_mesh
    from asya_local.errors import LocalCloudError

    try:
        loaded = load_mesh(mesh, stage)
    except MeshFileError as error:
        raise LocalCloudError(str(error)) from error
    for line in mermaid(loaded.mesh):
        echo(line)


def mermaid(mesh: MeshFile) -> Iterator[str]:
    """Yield the lines of a flowchart."""
    yield "flowchart LR"
    ways = dict.fromkeys(_ways(mesh))
    names = dict.fromkeys((*mesh.actors, *(name for start, end, _ in ways for name in (start, end))))
    numbers = {name: f"n{number}" for number, name in enumerate(names)}
    for name, number in numbers.items():
        if name.startswith(_TOOL):
            yield f'  {number}>"{name.removeprefix(_TOOL)}"]'
        else:
            begin, end = _SHAPES[_kind(name, mesh.actors.get(name))]
            yield f'  {number}{begin}"{name}"{end}'
    for start, end, arrow in ways:
        yield f"  {numbers[start]} {arrow} {numbers[end]}"


_TOOL = "tool "
"""Tools may have the names of actors."""


def _ways(mesh: MeshFile) -> Iterator[tuple[str, str, str]]:
    for name, tool in mesh.tools.items():
        yield from ((start, end, "-->") for start, end in pairwise((_TOOL + name, *tool.route)))
    for name, actor in mesh.actors.items():
        yield from ((name, target, "-->") for target in actor.can_send_to or ())
        for policy, section in actor.resiliency.policies.items():
            if section.then_route:
                yield from ((start, end, f"-.{policy}.->") for start, end in pairwise((name, *section.then_route)))
    yield from (("x-sink", hook, "-.->") for hook in mesh.sink.hooks)


def _kind(name: str, actor: ActorSection | None) -> str:
    if actor is None:
        return {"x-fan-in": "fan_in", "x-pause": "pause"}.get(name, "end" if name in {"x-sink", "x-sump"} else "light")
    if actor.kind is not None:
        return actor.kind
    return "heavy" if actor.spark is not None else "light"
