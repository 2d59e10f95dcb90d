"""The user's one file, `mesh.yaml`: its model, its checks, and the actor table that is made from it."""

from asya_infra.mesh_file.load import LoadedMesh, load_mesh
from asya_infra.mesh_file.problems import MeshFileError, Problem
from asya_infra.mesh_file.table import to_table

__all__ = ["LoadedMesh", "MeshFileError", "Problem", "load_mesh", "to_table"]
