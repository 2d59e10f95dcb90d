"""`asya schema`: prints the JSON Schema of the mesh file."""

from __future__ import annotations

from asya_cli.mesh_file.loading import own_capabilities
from asya_cli.options import DEFAULT_MESH, MeshFile
from asya_cli.output.text import write_json


def schema(mesh: MeshFile = DEFAULT_MESH) -> None:
    """Print the JSON Schema of the mesh file, with which editors complete and check its keys.

    A mesh file that names capabilities of its own has their kinds and options too.
    """
    from asya_infra.mesh_file.capability_model import mesh_model
    from asya_infra.mesh_file.schema import PATH, schema_text

    named = own_capabilities(mesh)
    write_json(PATH.read_bytes() if named is None else schema_text(mesh_model(named.registry)).encode())
