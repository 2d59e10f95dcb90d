"""A heavy actor: the function that makes its envelopes pending, and the role of its job runs."""

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya_infra.constructs.actors.system_actor import system_actor
from asya_infra.constructs.function import MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.spark.job_role import job_role
from asya_infra.mesh import Mesh
from asya_infra.nag import acknowledge_wildcards
from asya_infra.permissions.grant import document
from asya_infra.permissions.job_runs import run_access


def heavy_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """Add a heavy actor. The batch size of its queue is fixed; `batch` in the mesh file is about job runs."""
    function = system_actor(scope, mesh, layer, gateway, name)
    policy = _access_policy(function, mesh, name)
    job_role(function, mesh, name, policy)
    return function


def _access_policy(scope: Construct, mesh: Mesh, name: str) -> iam.IManagedPolicy:
    """Add the policy that StartJobRun names: the session of a run may do nothing else with the user's resources."""
    grants = run_access(mesh.file, mesh.addresses, name, mesh.kms_key)
    policy = iam.CfnManagedPolicy(
        scope,
        "Access",
        managed_policy_name=mesh.addresses.access_policy_name(name),
        description=f"What job runs of {name} may reach beside their own files",
        policy_document=document(grants),
    )
    acknowledge_wildcards(policy, grants)
    return iam.ManagedPolicy.from_managed_policy_arn(scope, "AccessAttached", policy.ref)
