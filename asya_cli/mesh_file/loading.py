"""Loads the mesh file that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asya_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from asya_infra.mesh_file import LoadedMesh


def check_exists(mesh: Path) -> None:
    """Check that a mesh file is there.

    Raises:
        CommandError: It is not.
    """
    if not mesh.is_file():
        advice = "Name it with --mesh, or make one with `asya init NAME`."
        raise CommandError(f"there is no mesh file {mesh}", advice, ExitCode.NOT_FOUND)


def load(mesh: Path, stage: str | None) -> LoadedMesh:
    """Load a mesh file.

    Raises:
        CommandError: The mesh file does not exist or is invalid.
    """
    from asya_infra.mesh_file import MeshFileError, load_mesh

    check_exists(mesh)
    try:
        return load_mesh(mesh, stage)
    except MeshFileError as error:
        raise CommandError(str(error)) from error
