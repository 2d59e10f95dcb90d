"""The KMS key that signs stream tokens (`protocol §13`, stream-token)."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from constructs import Construct

from asya_infra.checkov import acknowledge_check
from asya_infra.mesh import Mesh


def stream_key(scope: Construct, mesh: Mesh) -> kms.Key:
    """Add an HMAC key. It may be deleted with the stack, because tokens expire after an hour."""
    key = kms.Key(
        scope,
        "StreamKey",
        description=f"Stream tokens of the mesh {mesh.namespace}",
        key_spec=kms.KeySpec.HMAC_256,
        key_usage=kms.KeyUsage.GENERATE_VERIFY_MAC,
        removal_policy=RemovalPolicy.DESTROY,
        pending_window=Duration.days(7),
    )
    acknowledge_check(key, "CKV_AWS_7", "KMS rotates symmetric encryption keys only, and this is an HMAC key.")
    return key
