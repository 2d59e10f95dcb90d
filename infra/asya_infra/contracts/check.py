"""Holds the contracts of a mesh together: compares the types of its code along its routes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from asya_infra.contracts.mesh_types import MeshTypes, read_mesh_types, tool_schemas
from asya_infra.contracts.read import FolderTypes, Schema
from asya_infra.contracts.routes import route_conflicts
from asya_infra.mesh_file import LoadedMesh
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.problems import MeshFileError
from asya_infra.mesh_file.source import Location


def hold_together(loaded: LoadedMesh, root: Path) -> LoadedMesh:
    """Read the types of a mesh, and hold them against each other (`with_types`).

    Args:
        loaded: a valid mesh file.
        root: the folder for builds.

    Raises:
        MeshFileError: types conflict along a route, or a model of a tool cannot be read.
    """
    return with_types(loaded, read_mesh_types(loaded, root))


def with_types(loaded: LoadedMesh, types: MeshTypes) -> LoadedMesh:
    """Return the mesh with the schemas of its models, and notes on types that cannot be read.

    Args:
        loaded: a valid mesh file.
        types: the types of its code.

    Raises:
        MeshFileError: types conflict along a route, or a model of a tool cannot be read.
    """
    mesh, light = loaded.mesh, types.light
    findings: list[tuple[Location, str]] = [
        (("tools", name, "input_schema"), f"the model {model!r} cannot be read: {light.errors[model]}")
        for name, model in types.models.items()
        if model in light.errors
    ]
    findings += [
        (
            ("tools", name, "input_schema"),
            f"{model!r} should be a model with fields, because the arguments are an object",
        )
        for name, model in types.models.items()
        if model in light.models and light.models[model].get("type") != "object"
    ]
    schemas = tool_schemas(mesh, types)
    findings += route_conflicts(mesh, types.functions, schemas)
    if findings:
        raise MeshFileError(loaded.source.problem(place, text) for place, text in findings)
    notes = tuple(_notes(loaded, light, types.heavy))
    return replace(loaded, mesh=_with_schemas(mesh, types.models, schemas), notes=notes)


def _with_schemas(mesh: MeshFile, models: Mapping[str, str], schemas: Mapping[str, Schema]) -> MeshFile:
    if not models:
        return mesh
    tools = {
        name: tool.model_copy(update={"input_schema": schemas[name]}) if name in models else tool
        for name, tool in mesh.tools.items()
    }
    return mesh.model_copy(update={"tools": tools})


def _notes(loaded: LoadedMesh, *folders: FolderTypes) -> Iterator[str]:
    for types in folders:
        for key, error in types.errors.items():
            if key in loaded.mesh.actors:
                yield (
                    f"{loaded.path}: actors.{key}: its types are not known, and its routes not checked, because importing "
                    f"its code failed: {error}"
                )
