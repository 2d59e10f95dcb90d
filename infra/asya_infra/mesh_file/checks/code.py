"""Checks that handlers and job functions exist in what is deployed, and that no file hides a module of the mesh."""

from collections.abc import Iterator
from pathlib import Path

from asya.contracts.spark_types import is_name
from asya_infra.build.code_files import CodeFiles, code_files
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.spark_model import SparkSection
from asya_infra.mesh_file.user_code import CodeError, check_model, detect_shape, find_definition, hidden_modules
from asya_infra.product.places import JOB_LIBRARY

# User code comes before the library on the path, and `mesh.json` is the actor table.
_RESERVED_FILES = ("asya", "asya.py", "asya_spark", "mesh.json")


def check_code(context: Context) -> Iterator[Finding]:
    """Check that handlers, job functions and the types of payloads exist, and that no file hides a module of the mesh."""
    code = code_files(context.folder / context.mesh.code)
    jobs = code_files(context.folder / context.mesh.jobs, without=JOB_LIBRARY)
    if any(actor.handler for actor in context.mesh.actors.values()):
        yield from _folder("code", code)
    if any(actor.spark for actor in context.mesh.actors.values()):
        yield from _folder("jobs", jobs)
    for name, actor in context.mesh.actors.items():
        try:
            if actor.handler is not None and code.folder.is_dir():
                _check_deployed(code, find_definition(code.folder, actor.handler).path)
        except CodeError as error:
            yield ("actors", name, "handler"), str(error)
        if actor.spark is not None and jobs.folder.is_dir():
            for key, problem in _job(jobs, actor.spark):
                yield ("actors", name, "spark", key), problem


def _check_deployed(code: CodeFiles, path: Path) -> None:
    """Check that a module is deployed.

    Raises:
        CodeError: it is not.
    """
    reason = code.why_left_out(path.relative_to(code.folder).as_posix())
    if reason is not None and JOB_LIBRARY not in path.resolve().parents:
        raise CodeError(f"{path} is not deployed: {reason}")


def _job(jobs: CodeFiles, spark: SparkSection) -> Iterator[tuple[str, str]]:
    """Yield the key and the problem of a job function, and of the type of its payloads."""
    declared = spark.payload_schema
    try:
        if declared and is_name(declared):
            check_model(jobs.folder, declared)
    except CodeError as error:
        yield "payload_schema", str(error)
    try:
        shape = detect_shape(jobs.folder, spark.job)
        _check_deployed(jobs, find_definition(jobs.folder, spark.job).path)
    except CodeError as error:
        yield "job", str(error)
        return
    if declared and shape == "payload":
        yield (
            "payload_schema",
            f"{spark.job!r} takes one payload and no DataFrame; remove this key, and annotate the payload instead",
        )


def _folder(key: str, code: CodeFiles) -> Iterator[Finding]:
    folder = code.folder
    if not folder.is_dir():
        yield (key,), f"there is no folder {folder}"
    for each in code.problems:
        yield (key,), f"{folder / each.path} {each.reason}"
    for name in _RESERVED_FILES:
        if (folder / name).exists() and (folder / name).resolve() != JOB_LIBRARY:
            yield (key,), f"{folder / name} would hide a file of the mesh with the same name; rename it"
    for path, module in hidden_modules(folder):
        if path.name not in _RESERVED_FILES:
            yield (key,), f"{path} would hide the module {module!r}, which other code imports; rename it"
