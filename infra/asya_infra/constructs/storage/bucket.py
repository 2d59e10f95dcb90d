"""The mesh's own bucket: payloads, runs and frames, and by default data and results."""

import math

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from asya.ends.result_index import RECENT_PREFIX
from asya_infra.addresses import RESULTS_PREFIX
from asya_infra.checkov import acknowledge_check
from asya_infra.constructs.customer_key import customer_key
from asya_infra.constructs.trigger_sources import bucket_notifications
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.result_index import has_index
from asya_infra.nag import acknowledge

_DAY = 86400
_UNFINISHED_UPLOADS = 7
_RECENT_ROWS = 30
_NO_ACCESS_LOGS = "Server access logs would need a second bucket per mesh; an account may use CloudTrail data events."


class MeshStorage(Construct):
    """A private, encrypted bucket. Lifecycle rules expire transient objects.

    Even without the bucket's retention CloudFormation deletes no bucket that has objects.
    """

    def __init__(self, scope: Construct, mesh: Mesh, removal: RemovalPolicy) -> None:
        super().__init__(scope, "Storage")
        retention = mesh.file.storage.retention
        lifetimes = {
            # The objects that a message or a replay may need.
            **dict.fromkeys(
                (
                    "payloads/",
                    "inbox/",
                    "pending/",
                    "buffered/",
                    "slices/",
                    "hops/",
                    "paused/",
                    "waiting/",
                    "dlq/",
                    "reports/",
                ),
                retention.payloads,
            ),
            "runs/": retention.runs,
        }
        if has_index(mesh.file) and not mesh.file.storage.results_bucket:
            # Each night x-index merges them into a day. It may rebuild a day for a month (`OLDEST` in that job).
            lifetimes[RESULTS_PREFIX + RECENT_PREFIX] = _RECENT_ROWS * _DAY
        if retention.results is not None:
            lifetimes[RESULTS_PREFIX] = retention.results
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
                    s3.LifecycleRule(id=prefix.rstrip("/"), prefix=prefix, expiration=Duration.days(_days(seconds)))
                    for prefix, seconds in sorted(lifetimes.items())
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


def _days(seconds: float) -> int:
    return math.ceil(seconds / _DAY)
