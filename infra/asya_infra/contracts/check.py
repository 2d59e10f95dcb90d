"""Holds the contracts of a mesh together: reads the types of its code, and compares them along its routes."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from asya_infra.contracts.read import FolderTypes, Function, Schema, read_types
from asya_infra.contracts.routes import route_conflicts
from asya_infra.mesh_file import LoadedMesh
from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.problems import MeshFileError
from asya_infra.mesh_file.source import Location
from asya_infra.mesh_file.user_code import CodeError, detect_shape, find_definition

# An annotation of these names alone says nothing that could conflict, so its module is not imported.
_SAYS_NOTHING = frozenset(
    {"Any", "dict", "object", "FanOut", "SparkSession", "None", "Iterator", "Generator", "AsyncIterator", "DataFrame"}
)
# Of a secret, while the code is imported.
_NO_SECRET = "not-known"


def hold_together(loaded: LoadedMesh, root: Path) -> LoadedMesh:
    """Return the mesh with the schemas of its models, and notes on types that cannot be read.

    Args:
        loaded: a valid mesh file.
        root: the folder for builds.

    Raises:
        MeshFileError: types conflict along a route, or a model of a tool cannot be read.
    """
    mesh = loaded.mesh
    models = {name: tool.input_schema for name, tool in mesh.tools.items() if isinstance(tool.input_schema, str)}
    hashed, variables = mesh.requires_hashes, _variables(mesh)
    light = read_types(
        root, loaded.code_folder, list(_handlers(loaded)), list(models.values()), variables, hashed=hashed
    )
    heavy = read_types(root, loaded.jobs_folder, list(_jobs(loaded)), [], variables, hashed=hashed)
    findings: list[tuple[Location, str]] = [
        (("tools", name, "input_schema"), f"the model {model!r} cannot be read: {light.errors[model]}")
        for name, model in models.items()
        if model in light.errors
    ]
    findings += [
        (
            ("tools", name, "input_schema"),
            f"{model!r} should be a model with fields, because the arguments are an object",
        )
        for name, model in models.items()
        if model in light.models and light.models[model].get("type") != "object"
    ]
    schemas = {
        name: light.models.get(tool.input_schema, {}) if isinstance(tool.input_schema, str) else dict(tool.input_schema)
        for name, tool in mesh.tools.items()
    }
    findings += route_conflicts(mesh, {**light.functions, **heavy.functions}, schemas)
    if findings:
        raise MeshFileError(loaded.source.problem(place, text) for place, text in findings)
    notes = tuple(_notes(loaded, light, heavy))
    return replace(loaded, mesh=_with_schemas(mesh, models, schemas), notes=notes)


def _handlers(loaded: LoadedMesh) -> Iterator[Function]:
    for name, actor in loaded.mesh.actors.items():
        is_typed = actor.handler is not None and actor.handler_mode == "payload" and actor.kind is None
        if is_typed and _says_something(loaded.code_folder, str(actor.handler)):
            yield Function(name, str(actor.handler), lists_fan_out=actor.fan_out_lists)


def _jobs(loaded: LoadedMesh) -> Iterator[Function]:
    for name, actor in loaded.mesh.actors.items():
        if actor.spark is not None and _takes_payloads(loaded.jobs_folder, actor):
            yield Function(name, actor.spark.job, given=1)


def _takes_payloads(folder: Path, actor: ActorSection) -> bool:
    if actor.spark is None:
        return False
    try:
        return detect_shape(folder, actor.spark.job) == "payload" and _says_something(folder, actor.spark.job)
    except CodeError:
        return False


def _says_something(folder: Path, name: str) -> bool:
    """Whether the annotations of a function may say more than that it takes and gives some dict."""
    try:
        function = find_definition(folder, name).definition
    except CodeError:
        return False
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return True  # only running the code can tell
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    annotations = [each for each in (*(argument.annotation for argument in arguments), function.returns) if each]
    return any(_names(annotation) for annotation in annotations)


def _names(annotation: ast.expr) -> bool:
    text = ast.unparse(annotation).strip("'\"").replace("dict[str, ", "dict[")
    words = text.replace("[", " ").replace("]", " ").replace("|", " ").replace(",", " ").split()
    return any(word.rpartition(".")[2] not in _SAYS_NOTHING for word in words)


def _variables(mesh: MeshFile) -> dict[str, str]:
    """The variables of all actors: a module may read one when it is imported."""
    values: dict[str, str] = {}
    for actor in mesh.actors.values():
        values |= dict.fromkeys(actor.secrets, _NO_SECRET) | {key: str(value) for key, value in actor.env.items()}
    return values


def _with_schemas(mesh: MeshFile, models: dict[str, str], schemas: dict[str, Schema]) -> MeshFile:
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
