"""`asya graph`: draws the actors of a mesh file and the ways between them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from asya_cli.errors import CommandError
from asya_cli.json_input import unwritable
from asya_cli.mesh_file.loading import load
from asya_cli.options import DEFAULT_MESH, MeshFile
from asya_cli.output.files import whole_file
from asya_cli.output.text import echo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya_cli.mesh_file.diagram import Diagram, Way

Format = Literal["mermaid", "svg"]

_OTHER_PICTURES = frozenset({".gif", ".jpeg", ".jpg", ".pdf", ".png", ".webp"})

_SHAPES = {
    "tool": (">", "]"),
    "heavy": ("[[", "]]"),
    "pause": ("{{", "}}"),
    "wait": ("{{", "}}"),
    "fan_in": ("[/", "\\]"),
    "end": ("([", "])"),
}
"""How Mermaid draws the kinds of nodes that are no box: flag, double box, hexagon, trapezoid, stadium."""


def graph(
    mesh: MeshFile = DEFAULT_MESH,
    *,
    stage: Annotated[str, typer.Option("--stage", help="A stage of the mesh file.")] = "",
    form: Annotated[
        Format | None,
        typer.Option("--format", help="By default that of the name of --output, or else mermaid.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the diagram to this file instead of standard output.")
    ] = None,
) -> None:
    """Draw a diagram of a mesh: in Mermaid, which GitHub and many editors show, or as an SVG picture.

    Tools lead along their routes. Other ways are those of `can_send_to`, slices among them, and, dashed, of `then_route` and hooks.
    An actor without `can_send_to` may send to every actor, which is not drawn.
    """
    from asya_cli.mesh_file.diagram import diagram_of
    from asya_cli.mesh_file.svg import svg

    is_svg = (form or _form_of(output)) == "svg"
    loaded = load(mesh, stage)
    diagram = diagram_of(loaded.mesh)
    text = svg(diagram, f"The mesh {loaded.namespace}") if is_svg else "".join(f"{line}\n" for line in mermaid(diagram))
    if output is None:
        echo(text.removesuffix("\n"))
        return
    try:
        with whole_file(output) as file:
            file.write(text.encode())
    except OSError as error:
        raise unwritable(output, error) from error
    echo(f"{output} shows {loaded.namespace}", err=True)


def _form_of(output: Path | None) -> Format:
    """Return the format that the name of a file asks for.

    Raises:
        CommandError: It is that of a picture that the command does not draw.
    """
    suffix = output.suffix.lower() if output is not None else ""
    if suffix in _OTHER_PICTURES:
        raise CommandError(f"the picture of a mesh is SVG, and not {suffix}", "Type: asya graph -o mesh.svg")
    return "svg" if suffix == ".svg" else "mermaid"


def mermaid(diagram: Diagram) -> Iterator[str]:
    """Yield the lines of a flowchart."""
    yield "flowchart LR"
    numbers = {node.key: f"n{number}" for number, node in enumerate(diagram.nodes)}
    for node in diagram.nodes:
        begin, end = _SHAPES.get(node.kind, ("[", "]"))
        yield f'  {numbers[node.key]}{begin}"{node.name}"{end}'
    for way in diagram.ways:
        yield f"  {numbers[way.start]} {_arrow(way)} {numbers[way.end]}"


def _arrow(way: Way) -> str:
    match way.kind:
        case "policy":
            return f"-.{way.label}.->"
        case "hook":
            return "-.->"
        case "slices":
            return "-->|slices|"
        case _:
            return "-->"
