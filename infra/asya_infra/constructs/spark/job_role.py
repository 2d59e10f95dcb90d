"""The role of a heavy actor's job runs. A session policy narrows each run to its own files."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.role import mesh_role
from asya_infra.mesh import Mesh
from asya_infra.permissions.job_runs import run_files


def job_role(scope: Construct, mesh: Mesh, actor: str, access: iam.IManagedPolicy) -> None:
    """Add the role of an actor's job runs.

    One role per actor, because a role holds 10,240 characters of inline policies: the access of about eleven actors.

    Args:
        scope: the construct of the actor.
        mesh: the mesh.
        actor: the name of the heavy actor.
        access: the policy with the actor's `access`.
    """
    code = mesh.addresses.objects_arn(mesh.asset_bucket, f"{mesh.asset_prefix}*")
    grants = run_files(mesh.file, mesh.addresses, actor, code)
    mesh_role(
        Construct(scope, "Job"), mesh, names.job_role(actor), "emr-serverless.amazonaws.com", grants, managed=[access]
    )
