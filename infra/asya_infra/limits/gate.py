"""The limit gate: refuses a synthesized mesh that an AWS account would refuse, or that would fail in it."""

import json
from pathlib import Path

from asya_infra.limits.assets import check_assets
from asya_infra.limits.sessions import check_sessions
from asya_infra.limits.templates import check
from asya_infra.mesh import Mesh


class LimitError(Exception):
    """The templates exceed limits of AWS. The message has a line for each."""


def check_mesh(mesh: Mesh, folder: Path) -> None:
    """Check a synthesized mesh.

    Args:
        mesh: the mesh.
        folder: the output folder of the CDK, with the templates and the assets.

    Raises:
        LimitError: the mesh exceeds a limit of AWS.
    """
    templates = {
        file.name.removesuffix(".template.json"): json.loads(file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("*.template.json"))
    }
    violations = [*check(templates), *check_assets(folder, templates), *check_sessions(mesh)]
    if violations:
        lines = "\n".join(f"  {violation}" for violation in violations)
        raise LimitError(f"AWS would refuse this mesh:\n{lines}")
