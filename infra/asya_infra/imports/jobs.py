"""Finds imports of jobs that no package of a run brings, without running the jobs: Python looks for packages when a run starts."""

import sys
from collections.abc import Iterator
from pathlib import Path

from asya.heavy.job_python import JOB_PYTHON
from asya_infra.build.packages import REQUIREMENTS, PackagesError, Target, build_folder_packages
from asya_infra.mesh_file import LoadedMesh
from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.spark import sized_sections
from asya_infra.mesh_file.user_code import JOB_LIBRARIES, Import, find_imports
from asya_infra.product.interpreters import interpreter_for

# They let a run import what no `requirements.txt` names.
_OWN_PATHS = frozenset({"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"})
_OWN_PYTHONS = frozenset({"spark.pyspark.python", "spark.pyspark.driver.python"})


def job_notes(loaded: LoadedMesh, root: Path) -> tuple[str, ...]:
    """Return a note for each import of a job that neither its folder nor its `requirements.txt` brings.

    Only imports without a condition count. Jobs with files or a Python of their own may have further packages, and are left out.

    Args:
        loaded: a valid mesh file.
        root: the folder for builds.
    """
    return tuple(_notes(loaded, root))


def _notes(loaded: LoadedMesh, root: Path) -> Iterator[str]:
    folder = loaded.jobs_folder
    found: dict[Import, str] = {}
    for name, actor in loaded.mesh.actors.items():
        for each in find_imports(folder, actor.spark.job) if actor.spark and not _has_more(actor) else ():
            if each.package not in JOB_LIBRARIES and each.package not in sys.stdlib_module_names:
                found.setdefault(each, name)
    if not found:
        return
    try:
        brought = _packages(loaded, root)
    except (PackagesError, OSError) as error:
        yield f"{loaded.path}: no import of a job was looked up, so a missing package is not found: {error}"
        return
    for each, actor_name in found.items():
        if each.package not in brought:
            yield (
                f"{each.path}:{each.line}: no package of {folder / REQUIREMENTS} brings {each.package!r}, which the job of actor "
                f"{actor_name!r} imports; name its package there, because AWS documents no list of the packages in its images"
            )


def _has_more(actor: ActorSection) -> bool:
    """Whether runs of an actor may have packages that the mesh does not know."""
    spark = actor.spark
    return spark is not None and bool(
        spark.py_files
        or spark.archives
        or actor.env.keys() & _OWN_PATHS
        or any(each.conf.keys() & _OWN_PYTHONS for _, each in sized_sections(spark))
    )


def _packages(loaded: LoadedMesh, root: Path) -> frozenset[str]:
    """Return the names that the packages of the `requirements.txt` can be imported by.

    Raises:
        PackagesError: a package cannot be installed.
    """
    target = Target(interpreter=interpreter_for(JOB_PYTHON).path)
    folder = build_folder_packages(root, loaded.jobs_folder, target, hashed=loaded.mesh.requires_hashes)
    return frozenset(path.name.partition(".")[0] for path in folder.iterdir()) if folder else frozenset()
