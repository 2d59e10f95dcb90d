"""A heavy actor: the function that makes its envelopes pending, and the policy that its job runs are narrowed to."""

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.constructs.function import EventSourceSettings, FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.table import section_of
from asya_infra.nag import acknowledge_wildcards
from asya_infra.permissions import actors
from asya_infra.permissions.access import access_grants
from asya_infra.permissions.grant import Grant, document
from asya_infra.permissions.spark import scratch


def heavy_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """The admitting function of a heavy actor, fed by its queue. Its batches are SQS's; job runs have their own size."""
    section, addresses = section_of(mesh.file, name), mesh.addresses
    function = MeshFunction(
        scope,
        mesh,
        layer,
        FunctionSettings(
            name=name,
            handler="asya.spark.lambdas.wiring.enqueue",
            code=mesh.table_code(),
            grants=actors.enqueue(addresses, name, gateway.api_id),
            timeout=timings.ENQUEUE_TIMEOUT,
            memory=section.memory,
            environment={"ASYA_GATEWAY_URL": gateway.url},
            in_routes=names.is_routable(name),
        ),
    )
    function.add_event_source(
        EventSourceSettings(
            batch_size=timings.ENQUEUE_BATCH,
            window=timings.ENQUEUE_WINDOW,
            concurrency=section.concurrency,
            provisioned=section.provisioned,
        )
    )
    _access_policy(function, mesh, name)
    return function


def run_access(mesh: Mesh, name: str) -> list[Grant]:
    """What job runs of an actor may reach beside their own files: its `access`, and its scratch room."""
    access = access_grants(section_of(mesh.file, name).access, mesh.addresses)
    return [*scratch(mesh.addresses, name), *access]


def _access_policy(scope: Construct, mesh: Mesh, name: str) -> None:
    addresses = mesh.addresses
    grants = run_access(mesh, name)
    policy = iam.CfnManagedPolicy(
        scope,
        "Access",
        managed_policy_name=addresses.access_policy_name(name),
        description=f"What job runs of {name} may reach beside their own files",
        policy_document=document(grants),
    )
    acknowledge_wildcards(policy, grants)
