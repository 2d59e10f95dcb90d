"""A role with a computed name and the permissions of its grants."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from asya.protocol import names
from asya_infra.mesh import Mesh
from asya_infra.nag import acknowledge_wildcards
from asya_infra.permissions.grant import Grant, document


def mesh_role(scope: Construct, mesh: Mesh, name: str, service: str, grants: list[Grant]) -> iam.Role:
    """Add the role of a function or of job runs.

    Args:
        scope: the construct that needs the role.
        mesh: the mesh.
        name: the name of the actor or the system function.
        service: the service that may assume the role, such as `lambda.amazonaws.com`.
        grants: the permissions; duplicates count once.
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
