"""Handlers and jobs exist in the folders the file names; nothing there hides what the mesh brings along."""

from collections.abc import Iterator
from pathlib import Path

from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.user_code import CodeError, detect_shape, find
from asya_infra.repository import REPOSITORY

# A package of this name would come before the library's own on the path; `mesh.json` is where the actor table goes.
_TAKEN = ("asya", "asya.py", "asya_spark", "mesh.json")
_OUR_JOB_LIBRARY = REPOSITORY / "spark_jobs" / "asya_spark"


def check(context: Context) -> Iterator[Finding]:
    """Check that the handlers and job functions exist, and that no file hides a module of the mesh."""
    code, jobs = context.folder / context.mesh.code, context.folder / context.mesh.jobs
    if any(actor.handler for actor in context.mesh.actors.values()):
        yield from _folder("code", code)
    if any(actor.spark for actor in context.mesh.actors.values()):
        yield from _folder("jobs", jobs)
    for name, actor in context.mesh.actors.items():
        try:
            if actor.handler is not None and code.is_dir():
                find(code, actor.handler)
        except CodeError as error:
            yield ("actors", name, "handler"), str(error)
        try:
            if actor.spark is not None and jobs.is_dir():
                detect_shape(jobs, actor.spark.job)
        except CodeError as error:
            yield ("actors", name, "spark", "job"), str(error)


def _folder(key: str, folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        yield (key,), f"there is no folder {folder}"
    for taken in _TAKEN:
        if (folder / taken).exists() and (folder / taken).resolve() != _OUR_JOB_LIBRARY:
            yield (key,), f"{folder / taken} would hide what the mesh itself brings under that name; rename it"
