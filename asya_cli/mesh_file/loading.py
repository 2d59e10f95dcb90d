"""Loads the mesh file that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asya_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from asya_infra.mesh_file import LoadedMesh
    from asya_infra.mesh_file.capabilities import NamedCapabilities


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


def load_with_types(mesh: Path, stage: str) -> LoadedMesh:
    """Load a mesh file, and hold the types of its actors against each other, as synthesis does.

    Raises:
        CommandError: The mesh file does not exist or is invalid, or types conflict.
    """
    from asya_infra.contracts.check import hold_together
    from asya_infra.mesh_file import MeshFileError
    from asya_infra.product.places import BUILD

    loaded = load(mesh, stage)
    try:
        return hold_together(loaded, BUILD)
    except MeshFileError as error:
        raise CommandError(str(error)) from error


def own_capabilities(mesh: Path) -> NamedCapabilities | None:
    """Read the capabilities that a mesh file names; None if there are none, which costs no import.

    Raises:
        CommandError: The mesh file cannot be read, or a manifest is wrong.
    """
    if not mesh.is_file() or b"capabilities" not in mesh.read_bytes():
        return None
    from asya_infra.mesh_file import MeshFileError
    from asya_infra.mesh_file.capabilities import named_capabilities
    from asya_infra.mesh_file.source import read_source

    try:
        named = named_capabilities(read_source(mesh), mesh.parent)
    except MeshFileError as error:
        raise CommandError(str(error)) from error
    if named.problems:
        raise CommandError(str(MeshFileError(named.problems)))
    return named
