"""`asya schema`: prints the JSON Schema of the mesh file."""

from __future__ import annotations

from asya_cli.output.text import write_json


def schema() -> None:
    """Print the JSON Schema of the mesh file, with which editors complete and check its keys."""
    from asya_infra.mesh_file.schema import PATH

    write_json(PATH.read_bytes())
