"""Loads a mesh file: parses, upgrades, validates and checks it, and collects all problems."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asya_infra.build.code_files import CodeFiles, code_files
from asya_infra.mesh_file.capabilities import ONLY_THE_PRODUCTS, NamedCapabilities
from asya_infra.mesh_file.checks import run_checks
from asya_infra.mesh_file.checks.context import Context
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.source import (
    MeshFileError,
    Problem,
    Source,
    declared_stages,
    name_stage,
    read_source,
    stage_problems,
    with_stage,
)
from asya_infra.mesh_file.validation import ValidationResult, validate
from asya_infra.product.places import JOB_LIBRARY


@dataclass(frozen=True)
class LoadedMesh:
    """A valid mesh file: its path, its model, and the namespace with the stage.

    Attributes:
        notes: what synthesis tells of types that it cannot read (`asya_infra.contracts`).
        capabilities: the capabilities of the mesh.
    """

    path: Path
    mesh: MeshFile
    namespace: str
    source: Source
    notes: tuple[str, ...] = ()
    capabilities: NamedCapabilities = ONLY_THE_PRODUCTS

    @property
    def code_folder(self) -> Path:
        """The folder of the light handlers."""
        return self.path.parent / self.mesh.code

    @property
    def jobs_folder(self) -> Path:
        """The folder of the heavy jobs."""
        return self.path.parent / self.mesh.jobs

    def deployed_code(self) -> Iterator[CodeFiles]:
        """Yield the files of the folders that the actors of this mesh are deployed with, as they are now."""
        actors = self.mesh.actors.values()
        if self.mesh.capabilities or any(actor.handler for actor in actors):
            yield code_files(self.code_folder)
        if any(actor.spark for actor in actors):
            yield code_files(self.jobs_folder, without=JOB_LIBRARY)


def load_mesh(path: Path, stage: str | None = None) -> LoadedMesh:
    """Read and check a mesh file.

    Args:
        path: the mesh file.
        stage: a suffix of the namespace (`shop-staging`), and a key of `stages` if the file has any; None or empty for
            the base.

    Raises:
        MeshFileError: the file has problems; each has its line and key.
    """
    stage = stage or ""
    base = read_source(path)
    stages = declared_stages(base)
    source = with_stage(base, stage) if stage in stages else base
    validated = validate(source, path.parent)
    problems = [*validated.problems, *_check(source, validated, path, stage)]
    if stages:
        problems = [*stage_problems(base, stage), *_by_stage(base, path, {stage: problems})]
    if problems or validated.mesh is None:
        raise MeshFileError(problems)
    return LoadedMesh(
        path, validated.mesh, _namespace(validated.mesh, stage), source, capabilities=validated.capabilities
    )


def _namespace(mesh: MeshFile, stage: str) -> str:
    return f"{mesh.namespace}-{stage}" if stage else mesh.namespace


def _check(source: Source, validated: ValidationResult, path: Path, stage: str) -> list[Problem]:
    """Return the findings of all checks but those that are consequences of reported problems."""
    if validated.mesh is None:
        return []
    findings = run_checks(
        Context(validated.mesh, path.parent, _namespace(validated.mesh, stage), validated.capabilities.registry)
    )
    return [source.problem(place, text) for place, text in findings if not validated.is_consequence(place)]


def _by_stage(base: Source, path: Path, problems: dict[str, list[Problem]]) -> Iterator[Problem]:
    """Yield the problems of all stages, and name the stage in those that the base does not have.

    Args:
        base: the mesh file.
        path: its path.
        problems: those of the selected stage, which may be none.
    """
    for stage in declared_stages(base).keys() - problems.keys():
        source = with_stage(base, stage)
        validated = validate(source, path.parent)
        problems[stage] = [*validated.problems, *_check(source, validated, path, stage)]
    if not any(problems.values()):
        return
    validated = validate(base.copy(), path.parent)
    known = {*validated.problems, *_check(base, validated, path, "")}
    for stage, own in problems.items():
        yield from (problem if problem in known or not stage else name_stage(problem, stage) for problem in own)
