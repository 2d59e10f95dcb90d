"""The mesh file: its model and its checks. `load_mesh` reads a file, `to_table` makes the actor table."""

from asya_infra.mesh_file.load import LoadedMesh, load_mesh
from asya_infra.mesh_file.source import MeshFileError, Problem
from asya_infra.mesh_file.table import to_table

__all__ = ["LoadedMesh", "MeshFileError", "Problem", "load_mesh", "to_table"]
