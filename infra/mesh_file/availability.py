"""What a mesh file may already say although the mesh cannot do it yet: refused rather than ignored.

This is the one place to lift such a refusal: take the name out.
"""

from collections.abc import Iterator

from infra.mesh_file.checks.context import Finding
from infra.mesh_file.mesh_model import MeshFile


def unavailable(mesh: MeshFile) -> Iterator[Finding]:
    """The places of a valid mesh that cannot be deployed yet."""
    if mesh.gateway.streaming != "buffered":
        yield ("gateway", "streaming"), f"{mesh.gateway.streaming} is not available yet"
