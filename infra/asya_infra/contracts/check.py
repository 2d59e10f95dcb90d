"""Holds the contracts of a mesh together: compares the types of its code along its routes."""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import structs

from asya_infra.contracts.mesh_types import MeshTypes, read_mesh_types, tool_schemas
from asya_infra.contracts.read import FolderTypes, Schema
from asya_infra.contracts.routes import Finding, route_conflicts
from asya_infra.contracts.schemas import name_of, typed
from asya_infra.contracts.unions import alike_options
from asya_infra.mesh_file import LoadedMesh
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.source import Location, MeshFileError


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
    findings += route_conflicts(mesh, types.functions, schemas)
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
