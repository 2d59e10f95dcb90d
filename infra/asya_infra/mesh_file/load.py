"""Loads a mesh file: parses, upgrades, validates and checks it, and collects all problems."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from asya_infra.mesh_file.checks import run_checks
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.problems import MeshFileError, Problem
from asya_infra.mesh_file.source import Source, read_source
from asya_infra.mesh_file.validation import validate


@dataclass(frozen=True)
class LoadedMesh:
    """A valid mesh file: its path, its model, and the namespace with the stage."""

    path: Path
    mesh: MeshFile
    namespace: str
    source: Source

    @property
    def code_folder(self) -> Path:
        """The folder of the light handlers."""
        return self.path.parent / self.mesh.code

    @property
    def jobs_folder(self) -> Path:
        """The folder of the heavy jobs."""
        return self.path.parent / self.mesh.jobs


def load_mesh(path: Path, stage: str | None = None) -> LoadedMesh:
    """Read and check a mesh file.

    Args:
        path: the mesh file.
        stage: a suffix of the namespace (`shop-staging`); None or empty for the default stage.

    Raises:
        MeshFileError: the file has problems; each has its line and key.
    """
    source = read_source(path)
    validated = validate(source)
    problems = list(validated.problems)
    if validated.mesh is None:
        raise MeshFileError(problems)
    mesh = validated.mesh
    namespace = f"{mesh.namespace}-{stage}" if stage else mesh.namespace
    context = Context(mesh, path.parent, namespace)
    problems += _problems(
        source, (finding for finding in run_checks(context) if not validated.is_consequence(finding[0]))
    )
    if problems:
        raise MeshFileError(problems)
    return LoadedMesh(path, mesh, namespace, source)


def _problems(source: Source, findings: Iterable[Finding]) -> list[Problem]:
    return [source.problem(location, message) for location, message in findings]
