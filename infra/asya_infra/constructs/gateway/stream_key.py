"""The key behind stream tokens: made in KMS, and never seen outside it (`protocol §13`, stream-token)."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from constructs import Construct

from asya_infra.mesh import Mesh


def stream_key(scope: Construct, mesh: Mesh) -> kms.Key:
    """A key for MACs. Tokens live for an hour: with the stack it may go."""
    return kms.Key(
        scope,
        "StreamKey",
        description=f"Stream tokens of the mesh {mesh.namespace}",
        key_spec=kms.KeySpec.HMAC_256,
        key_usage=kms.KeyUsage.GENERATE_VERIFY_MAC,
        removal_policy=RemovalPolicy.DESTROY,
        pending_window=Duration.days(7),
    )
