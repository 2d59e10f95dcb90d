"""The customer managed key of the mesh file, as constructs take it."""

from aws_cdk import aws_kms as kms
from constructs import Construct

from asya_infra.mesh import Mesh


def customer_key(scope: Construct, mesh: Mesh) -> kms.IKey | None:
    """Return the customer managed key of a mesh; None if keys of AWS encrypt its data.

    The mesh does not own the key: its policy stays as it is (`asya_infra.permissions.key_policy`).

    Args:
        scope: the construct that uses the key.
        mesh: the mesh.
    """
    return None if mesh.kms_key is None else kms.Key.from_key_arn(scope, "CustomerKey", mesh.kms_key)
