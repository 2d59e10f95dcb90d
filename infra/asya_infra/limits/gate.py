"""The limit gate: refuses a synthesized mesh that an AWS account would refuse, or that would fail in it."""

from pathlib import Path

from asya_infra.assembly import read_assembly
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
        AssemblyError: the folder is not the output of the CDK for a mesh.
        LimitError: the mesh exceeds a limit of AWS.
    """
    assembly = read_assembly(folder)
    violations = [*check(assembly.templates, assembly.sizes), *check_assets(folder, assembly.templates)]
    refusals = [*(each for each in violations if not each.limit.is_quota), *check_sessions(mesh)]
    if refusals:
        lines = "\n".join(f"  {refusal}" for refusal in refusals)
        raise LimitError(f"AWS would refuse this mesh:\n{lines}")
    return [each for each in violations if each.limit.is_quota]
