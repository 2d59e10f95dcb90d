"""The input and the output of a check."""

from dataclasses import dataclass
from pathlib import Path

from asya.registry import PRODUCT, Registry
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.source import Location

Finding = tuple[Location, str]


@dataclass(frozen=True)
class Context:
    """A typed mesh, the folder its paths are relative to, the namespace with its stage, and the capabilities."""

    mesh: MeshFile
    folder: Path
    namespace: str
    registry: Registry = PRODUCT
