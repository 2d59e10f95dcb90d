"""Decides what `asya new` adds to a mesh: an entry of the mesh file, and files with code and tests."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from asya_cli.scaffold.files import piece_files
from asya_cli.scaffold.mesh_text import Entry
from asya_cli.scaffold.naming import check_actor, check_tool, code_names

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True)
class Addition:
    """What is added.

    Attributes:
        entries: the entries of the mesh file.
        files: the texts by paths that begin with `handlers/`, `jobs/` or `tests/`.
    """

    entries: tuple[Entry, ...]
    files: Mapping[str, str]


class UnknownActorError(ValueError):
    """A route names an actor that the mesh does not have."""


def actor(name: str) -> Addition:
    """Return a light actor.

    Raises:
        InvalidNameError: The protocol does not allow the name.
    """
    code = code_names(check_actor(name, "asya new actor {}"))
    entry = Entry("actors", name, (f"handler: {code.module}.{code.module}",))
    return Addition((entry,), piece_files("actor", name, code))


def spark_actor(name: str) -> Addition:
    """Return a heavy actor.

    Raises:
        InvalidNameError: The protocol does not allow the name.
    """
    code = code_names(check_actor(name, "asya new spark-actor {}"))
    lines = (
        "spark:",
        f"  job: {code.module}.{code.module}",
        "  executors: {max: 1}",
        "timeout: 10m",
        "batch: {window: 1s} # a job run waits so long for more envelopes; 15s by default",
    )
    return Addition((Entry("actors", name, lines),), piece_files("spark_actor", name, code))


def tool(name: str) -> Addition:
    """Return a tool with an actor of its own, which has the same name.

    Raises:
        InvalidNameError: The protocol does not allow the name for an actor or for a tool.
    """
    check_tool(name, "asya new tool {}")
    added = actor(check_actor(name, "asya new tool {}"))
    code = code_names(name)
    lines = ("description: Measures a text", f"route: [{name}]", f"input_schema: {code.module}.{code.model}")
    files = {**added.files, **piece_files("tool", name, code)}
    return Addition((*added.entries, Entry("tools", name, lines)), files)


def tool_of_route(name: str, route: tuple[str, ...], actors: Collection[str], model: str | None) -> Addition:
    """Return a tool that is a route through actors of the mesh.

    Args:
        name: the name of the tool.
        route: the actors in order.
        actors: the actors of the mesh.
        model: the type of the arguments, such as `orders.Orders`; None if it is unknown.

    Raises:
        InvalidNameError: The protocol does not allow the name.
        UnknownActorError: The mesh has no actor of the route.
    """
    check_tool(name, "asya new tool {} " + " ".join(f"--route {each}" for each in route))
    for each in route:
        if each not in actors:
            near = get_close_matches(each, list(actors), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; the mesh has {', '.join(sorted(actors))}"
            raise UnknownActorError(f"there is no actor {each!r}{hint}")
    schema = (f"input_schema: {model}",) if model else ()
    lines = (f"description: What {name} does, for those who call it", f"route: [{', '.join(route)}]", *schema)
    files = piece_files("tool_of_route", name, code_names(name))
    return Addition(
        (Entry("tools", name, lines),), {path: _of_route(text, route[0], model) for path, text in files.items()}
    )


def payload_model(source: bytes, module: str, function: str) -> str | None:
    """Return the type of a handler's only parameter, such as `orders.Orders`; None if it is not a class of the module."""
    try:
        nodes = ast.parse(source).body
    except (SyntaxError, ValueError):
        return None
    classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function:
            parameters = [*node.args.posonlyargs, *node.args.args]
            annotation = parameters[0].annotation if len(parameters) == 1 else None
            if isinstance(annotation, ast.Name) and annotation.id in classes:
                return f"{module}.{annotation.id}"
    return None


def _of_route(text: str, first: str, model: str | None) -> str:
    text = text.replace("first-actor", first)
    if model is None:
        return text
    module = model.rpartition(".")[0]
    imports = f"import {module}\nfrom asya.testing import Mesh, payload_of"
    return (
        text.replace("from asya.testing import Mesh", imports)
        .replace("{}", f"payload_of({model})")
        .replace(
            "The payload above is empty. Write one here that fits, and", "Write the payload here that you expect, and"
        )
    )
