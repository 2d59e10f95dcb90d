"""The limit gate: refuses a synthesized mesh that an AWS account would refuse, or that would fail in it."""

import json
from pathlib import Path

from asya_infra.limits.assets import check_assets
from asya_infra.limits.sessions import check_sessions
from asya_infra.limits.templates import check
from asya_infra.limits.violation import Violation
from asya_infra.mesh import Mesh


class LimitError(Exception):
    """The templates exceed limits of AWS. The message has a line for each."""


def check_mesh(mesh: Mesh, folder: Path) -> list[Violation]:
    """Check a synthesized mesh.

    Returns the default quotas that it exceeds. An account may have higher ones, and `asya doctor` reads them.

    Args:
        mesh: the mesh.
        folder: the output folder of the CDK, with the templates and the assets.

    Raises:
        LimitError: the mesh exceeds a limit of AWS.
    """
    # The folder may have the templates of another mesh, too; the manifest names those of this one.
    assembly = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    templates = {
        name: (folder / artifact["properties"]["templateFile"]).read_bytes()
        for name, artifact in sorted(assembly["artifacts"].items())
        if artifact["type"] == "aws:cloudformation:stack"
    }
    violations = [*check(templates), *check_assets(folder, templates)]
    refusals = [*(each for each in violations if not each.limit.is_quota), *check_sessions(mesh)]
    if refusals:
        lines = "\n".join(f"  {refusal}" for refusal in refusals)
        raise LimitError(f"AWS would refuse this mesh:\n{lines}")
    return [each for each in violations if each.limit.is_quota]
