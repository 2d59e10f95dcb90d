"""A role with a name that can be computed, and permissions that carry their reasons."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from asya.protocol import names
from asya_infra.mesh import Mesh
from asya_infra.nag import acknowledge_wildcards
from asya_infra.permissions.grant import Grant, document


def mesh_role(scope: Construct, mesh: Mesh, name: str, service: str, grants: list[Grant]) -> iam.Role:
    """The role of a function or of job runs.

    Args:
        scope: what the role is for.
        mesh: the mesh.
        name: whose role: an actor, or a system function.
        service: the service that may take it on, such as `lambda.amazonaws.com`.
        grants: all that it may do; the same permission twice counts once.
    """
    unique = list({str(grant.statement()): grant for grant in grants}.values())
    role = iam.Role(
        scope,
        "Role",
        role_name=names.role_name(mesh.namespace, name, mesh.addresses.region),
        assumed_by=iam.ServicePrincipal(service),
        inline_policies={"permissions": iam.PolicyDocument.from_json(document(unique))},
    )
    acknowledge_wildcards(role, unique)
    return role
