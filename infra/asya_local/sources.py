"""What a local mesh is made of: the checked mesh file, and the hashes of its sources, which decide what is done again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from asya.protocol.mesh_table import encode_table, with_version
from asya_infra.assemblies import PRODUCT_SOURCES
from asya_infra.build.folder import digest
from asya_infra.build.packages import package_inputs
from asya_infra.contracts.check import hold_together
from asya_infra.mesh_file import MeshFileError, load_mesh, to_table
from asya_infra.product.places import BUILD, INFRA
from asya_local.errors import LocalCloudError
from asya_local.state_folder import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from asya_infra.mesh_file import LoadedMesh


def load(mesh: Path, stage: str) -> LoadedMesh:
    """Load a mesh file, and hold the types of its actors against each other.

    Raises:
        LocalCloudError: The file has problems, or types conflict.
    """
    try:
        return hold_together(load_mesh(mesh, stage), BUILD)
    except MeshFileError as error:
        raise LocalCloudError(str(error)) from error


def code_folders(loaded: LoadedMesh) -> tuple[Path, ...]:
    """Return the folders with the code of a mesh that exist."""
    return tuple(folder.resolve() for folder in (loaded.code_folder, loaded.jobs_folder) if folder.is_dir())


@dataclass(frozen=True)
class Sources:
    """The hashes of one state of a mesh.

    Attributes:
        templates: of all that the templates follow from, packages included.
        handlers: of the folder with the light handlers.
        jobs: of the folder with the heavy jobs.
    """

    templates: str
    handlers: str
    jobs: str


def read_sources(loaded: LoadedMesh, stage: str, application_id: str, function_python: str) -> Sources:
    """Hash the sources of a mesh.

    Args:
        loaded: The mesh.
        stage: Its stage.
        application_id: The id of the Spark application, which is in the templates.
        function_python: The interpreter of the functions.
    """
    folders = (loaded.code_folder, loaded.jobs_folder)
    return Sources(
        templates=digest(
            [
                *(stage, application_id, function_python, str(loaded.path.resolve())),
                loaded.path,
                table_bytes(loaded, application_id),
                *(part for folder in folders for part in package_inputs(folder)),
                *(*PRODUCT_SOURCES, INFRA.parent / "asya_local"),
            ]
        ),
        handlers=digest([loaded.code_folder]),
        jobs=digest([loaded.jobs_folder]),
    )


def table_bytes(loaded: LoadedMesh, application_id: str) -> bytes:
    """Return the content of `mesh.json`, which is part of the code of each function."""
    return encode_table(with_version(to_table(loaded, existing_application=application_id)))


@dataclass(frozen=True)
class Deployed:
    """What runs in a local cloud.

    Attributes:
        sources: the hashes of its sources.
        in_place: whether code was replaced since the last deployment of the templates, which name older code.
    """

    sources: Sources
    in_place: bool = False

    def write(self, path: Path) -> None:
        """Write the record atomically."""
        write_private(path, json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Deployed | None:
        """Read the record; return None if it is missing, or if another version wrote it."""
        try:
            content = json.loads(path.read_text())
            return cls(Sources(**content["sources"]), content["in_place"])
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None
