"""Reads the types of the code of a mesh: of its typed handlers, its payload jobs, and the models of its tools."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from asya.contracts.spark_types import is_name
from asya_infra.build.code_tree import NO_SECRET
from asya_infra.contracts.read import FolderTypes, Function, Schema, Types, read_types
from asya_infra.mesh_file import LoadedMesh
from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.user_code import CodeError, detect_shape, find_definition

# An annotation of these names alone says nothing that could conflict, so its module is not imported.
_SAYS_NOTHING = frozenset(
    {"Any", "dict", "object", "FanOut", "SparkSession", "None", "Iterator", "Generator", "AsyncIterator", "DataFrame"}
)


@dataclass(frozen=True)
class MeshTypes:
    """The types of the code of a mesh.

    Attributes:
        light: those of the handlers' folder, with the models of tools.
        heavy: those of the jobs' folder.
        models: the models of tools, as the mesh file names them, by tool.
        columns: the named types of the payloads of DataFrame jobs, by actor.
    """

    light: FolderTypes
    heavy: FolderTypes
    models: Mapping[str, str]
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def functions(self) -> dict[str, Types]:
        """The types by actor."""
        known = self.heavy.columns
        frames = {name: Types(input=known[model]) for name, model in self.columns.items() if model in known}
        return {**self.light.functions, **self.heavy.functions, **frames}


def read_mesh_types(loaded: LoadedMesh, root: Path) -> MeshTypes:
    """Read the types of a mesh. The code is imported in a process of its own.

    Args:
        loaded: a valid mesh file.
        root: the folder for builds.
    """
    mesh = loaded.mesh
    models = {name: tool.input_schema for name, tool in mesh.tools.items() if isinstance(tool.input_schema, str)}
    hashed, variables = mesh.requires_hashes, _variables(mesh)
    light = read_types(
        root, loaded.code_folder, list(_handlers(loaded)), list(models.values()), variables, hashed=hashed
    )
    columns, jobs = dict(_columns(loaded)), list(_jobs(loaded))
    heavy = read_types(
        *(root, loaded.jobs_folder, jobs, [], variables),
        hashed=hashed,
        columns=list(columns.values()),
        spark=True,
    )
    return MeshTypes(light, heavy, models, columns)


def tool_schemas(mesh: MeshFile, types: MeshTypes) -> dict[str, Schema]:
    """Return the input schema of each tool; an empty one for a model that cannot be read."""
    return {
        name: _of_objects(types.light.models.get(tool.input_schema, {}))
        if isinstance(tool.input_schema, str)
        else dict(tool.input_schema)
        for name, tool in mesh.tools.items()
    }


def _of_objects(schema: Schema) -> Schema:
    """The schema of a model with the type of arguments, which that of a union does not name."""
    return {"type": "object", **schema} if schema else {}


def _handlers(loaded: LoadedMesh) -> Iterator[Function]:
    for name, actor in loaded.mesh.actors.items():
        is_typed = actor.handler is not None and actor.handler_mode == "payload" and actor.kind is None
        if is_typed and _says_something(loaded.code_folder, str(actor.handler)):
            yield Function(name, str(actor.handler), lists_fan_out=actor.fan_out_lists)


def _jobs(loaded: LoadedMesh) -> Iterator[Function]:
    for name, actor in loaded.mesh.actors.items():
        if actor.spark is not None and _takes_payloads(loaded.jobs_folder, actor):
            yield Function(name, actor.spark.job, given=1)


def _columns(loaded: LoadedMesh) -> Iterator[tuple[str, str]]:
    """Yield each DataFrame job whose type of payloads has a name, with this name."""
    for name, actor in loaded.mesh.actors.items():
        declared = actor.spark.payload_schema if actor.spark is not None else None
        if declared and is_name(declared):
            yield name, declared


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
        values |= dict.fromkeys(actor.secrets, NO_SECRET) | {key: str(value) for key, value in actor.env.items()}
    return values
