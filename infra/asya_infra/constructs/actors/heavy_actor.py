"""A heavy actor: the function that makes its envelopes pending, and the role of its job runs."""

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya_infra import timings
from asya_infra.constructs.actors.system_actor import system_actor
from asya_infra.constructs.function import MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.spark.job_role import job_role
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.table import section_of
from asya_infra.nag import acknowledge_wildcards
from asya_infra.permissions import actors
from asya_infra.permissions.access import access_grants
from asya_infra.permissions.encryption import use_key
from asya_infra.permissions.glue import catalog_grants
from asya_infra.permissions.grant import Grant, document
from asya_infra.permissions.secrets import secret_grants
from asya_infra.permissions.spark import scratch


def heavy_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """Add a heavy actor. The batch size of its queue is fixed; `batch` in the mesh file is about job runs."""
    function = system_actor(
        scope,
        mesh,
        layer,
        gateway,
        name,
        handler="asya.spark.lambdas.wiring.enqueue",
        grants=actors.enqueue(mesh.addresses, mesh.table, name),
        timeout=timings.ENQUEUE_TIMEOUT,
        batch_size=timings.ENQUEUE_BATCH,
        window=timings.ENQUEUE_WINDOW,
    )
    policy = _access_policy(function, mesh, name)
    job_role(function, mesh, name, policy)
    return function


def run_access(mesh: Mesh, name: str) -> list[Grant]:
    """Return the permissions of an actor's job runs beside their own files: scratch, catalog, `access`, `secrets`, the key.

    The access policy belongs to the role and to the session of each run, so these take nothing of the session policy.
    """
    section = section_of(mesh.file, name)
    access = access_grants(section.access, mesh.addresses, by_s3a=True)
    secrets = secret_grants(section.secrets.values(), mesh.addresses)
    has_catalog = section.spark is not None and section.spark.catalog == "glue"
    catalog = catalog_grants(mesh.addresses) if has_catalog else []
    grants = [*scratch(mesh.addresses, name), *catalog, *access, *secrets]
    return [*grants, *use_key(mesh.kms_key, grants, mesh.addresses)]


def _access_policy(scope: Construct, mesh: Mesh, name: str) -> iam.IManagedPolicy:
    """Add the policy that StartJobRun names: the session of a run may do nothing else with the user's resources."""
    grants = run_access(mesh, name)
    policy = iam.CfnManagedPolicy(
        scope,
        "Access",
        managed_policy_name=mesh.addresses.access_policy_name(name),
        description=f"What job runs of {name} may reach beside their own files",
        policy_document=document(grants),
    )
    acknowledge_wildcards(policy, grants)
    return iam.ManagedPolicy.from_managed_policy_arn(scope, "AccessAttached", policy.ref)
