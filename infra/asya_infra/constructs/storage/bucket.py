"""The mesh's own bucket: payloads, runs and frames, and by default data and results."""

import math
from collections.abc import Iterator

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from asya import registry
from asya.protocol.keys import RESULTS_PREFIX
from asya_infra.checkov import acknowledge_check
from asya_infra.constructs.customer_key import customer_key
from asya_infra.constructs.trigger_sources import bucket_notifications
from asya_infra.mesh import Mesh
from asya_infra.nag import acknowledge

_DAY = 86400
_UNFINISHED_UPLOADS = 7
_NO_ACCESS_LOGS = "Server access logs would need a second bucket per mesh; an account may use CloudTrail data events."


class MeshStorage(Construct):
    """A private, encrypted bucket. Lifecycle rules expire transient objects.

    Even without the bucket's retention CloudFormation deletes no bucket that has objects.
    """

    def __init__(self, scope: Construct, mesh: Mesh, removal: RemovalPolicy) -> None:
        super().__init__(scope, "Storage")
        key = customer_key(self, mesh)
        bucket = s3.Bucket(
            self,
            "Bucket",
            bucket_name=mesh.addresses.bucket,
            encryption=s3.BucketEncryption.S3_MANAGED if key is None else s3.BucketEncryption.KMS,
            encryption_key=key,
            # S3 then calls KMS once for many objects.
            bucket_key_enabled=None if key is None else True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            removal_policy=removal,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="unfinished-uploads",
                    abort_incomplete_multipart_upload_after=Duration.days(_UNFINISHED_UPLOADS),
                ),
                *(
                    s3.LifecycleRule(id=prefix.rstrip("/"), prefix=prefix, expiration=Duration.days(days))
                    for prefix, days in sorted(_lifetimes(mesh))
                ),
            ],
        )
        notifications = bucket_notifications(mesh)
        if notifications is not None:
            # The options of `Bucket` would add a function to set them.
            resource = bucket.node.default_child
            assert isinstance(resource, s3.CfnBucket)
            resource.notification_configuration = notifications
        acknowledge(bucket, "AwsSolutions-S1", _NO_ACCESS_LOGS)
        acknowledge_check(bucket, "CKV_AWS_18", _NO_ACCESS_LOGS)
        acknowledge_check(
            bucket,
            "CKV_AWS_21",
            "Versions would keep payloads and results beyond their retention. Conditional writes protect commits and "
            "manifests from being overwritten.",
        )


def _lifetimes(mesh: Mesh) -> Iterator[tuple[str, int]]:
    """Yield prefixes of the bucket with the days after which their objects expire.

    Results of this bucket expire also after a change to another bucket.
    """
    retention = mesh.file.storage.retention
    for each in registry.of(mesh.table).prefixes:
        seconds = each.kept * _DAY if isinstance(each.kept, int) else getattr(retention, each.kept)
        if seconds is not None and each.exists(mesh.table, each.name):
            yield (RESULTS_PREFIX if each.store == "results" else "") + each.name, math.ceil(seconds / _DAY)
