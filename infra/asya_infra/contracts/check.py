"""Holds the contracts of a mesh together: compares the types of its code along its routes.

Finds options of a union that no reader can tell apart (`protocol §6.typed.union`).
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import structs

from asya_infra.contracts.compatibility import refusals
from asya_infra.contracts.mesh_types import MeshTypes, read_mesh_types, tool_schemas
from asya_infra.contracts.read import FolderTypes, Schema
from asya_infra.contracts.routes import Finding, route_conflicts
from asya_infra.contracts.schemas import closed, name_of, typed
from asya_infra.mesh_file import LoadedMesh
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.source import Location, MeshFileError


def alike_options(unions: Mapping[str, list[list[Schema]]], key: Location) -> Iterator[tuple[Location, str]]:
    """Yield a finding for each pair of options that have the same JSON for some of their values, at the actor that has them.

    Args:
        unions: the schemas of the options of each union, by actor, as results give them.
        key: the key of an actor's section that names its code.
    """
    for actor, found in unions.items():
        texts = [
            text
            for options in found
            for one, other in itertools.combinations(options, 2)
            for text in _alike(one, other)
        ]
        for text in dict.fromkeys(texts):
            yield ("actors", actor, *key), text


def _alike(one: Schema, other: Schema) -> Iterator[str]:
    if _reads_as(one, other) or _reads_as(other, one):
        names = f"{one.get('title', 'an option')} and {other.get('title', 'another one')}"
        yield (
            f"values of {names} cannot be told apart in JSON, so one would arrive as the other; give them a field that "
            "differs, such as kind: Literal['a'] and kind: Literal['b']"
        )


def _reads_as(given: Schema, needed: Schema) -> bool:
    """Whether the shortest form of a value, the one with the fields that are always given, is one of another type."""
    required = given.get("required", [])
    shortest = {**given, "properties": {name: given.get("properties", {}).get(name, {}) for name in required}}
    return not refusals(closed(shortest), closed(needed))


def hold_together(loaded: LoadedMesh, root: Path) -> LoadedMesh:
    """Read the types of a mesh, and hold them against each other (`with_types`).

    Args:
        loaded: a valid mesh file.
        root: the folder for builds.

    Raises:
        MeshFileError: types conflict along a route, options of a union are alike, a model of a tool cannot be read, or that of a
            DataFrame has no Spark type.
    """
    return with_types(loaded, read_mesh_types(loaded, root))


def with_types(loaded: LoadedMesh, types: MeshTypes) -> LoadedMesh:
    """Return the mesh with the schemas of its models, and notes on types that cannot be read.

    Args:
        loaded: a valid mesh file.
        types: the types of its code.

    Raises:
        MeshFileError: types conflict along a route, options of a union are alike, a model of a tool cannot be read, or that of a
            DataFrame has no Spark type.
    """
    mesh, light, heavy = loaded.mesh, types.light, types.heavy
    schemas = tool_schemas(mesh, types)
    findings = [*_model_findings(types.models, light), *_column_findings(types.columns, heavy)]
    findings += [*alike_options(light.unions, ("handler",)), *alike_options(heavy.unions, ("spark", "job"))]
    findings += route_conflicts(mesh, types.functions, schemas, loaded.capabilities.registry)
    if findings:
        raise MeshFileError(loaded.source.problem(place, text) for place, text in findings)
    unread = {name: heavy.errors[model] for name, model in types.columns.items() if model in heavy.errors}
    notes = tuple(_notes(loaded, {**light.errors, **heavy.errors, **unread}))
    return dataclasses.replace(loaded, mesh=_with_schemas(mesh, types.models, schemas), notes=notes)


def _model_findings(models: Mapping[str, str], types: FolderTypes) -> Iterator[Finding]:
    for name, model in models.items():
        place: Location = ("tools", name, "input_schema")
        if model in types.errors:
            yield place, f"the model {model!r} cannot be read: {types.errors[model]}"
        elif not _is_object(types.models[model]):
            given = name_of(typed(types.models[model]))
            yield place, f"{model!r} should be a model with fields, because the arguments are an object; it is {given}"


def _is_object(schema: Schema) -> bool:
    """Whether all values are objects: those of a model, or of a union of models."""
    one = typed(schema)
    return one.is_known and all(option.is_known and option.types == {"object"} for option in one.options())


def _column_findings(columns: Mapping[str, str], types: FolderTypes) -> Iterator[Finding]:
    for name, model in columns.items():
        if model in types.problems:
            yield ("actors", name, "spark", "payload_schema"), f"{model!r}: {types.problems[model]}"


def _with_schemas(mesh: MeshFile, models: Mapping[str, str], schemas: Mapping[str, Schema]) -> MeshFile:
    if not models:
        return mesh
    tools = {
        name: structs.replace(tool, input_schema=schemas[name]) if name in models else tool
        for name, tool in mesh.tools.items()
    }
    return structs.replace(mesh, tools=tools)


def _notes(loaded: LoadedMesh, errors: Mapping[str, str]) -> Iterator[str]:
    for key, error in errors.items():
        if key in loaded.mesh.actors:
            yield (
                f"{loaded.path}: actors.{key}: its types are not known, and its routes not checked, because importing "
                f"its code failed: {error}"
            )
