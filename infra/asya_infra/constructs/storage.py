"""The bucket of a mesh, and its tables with the keys `pk` and `sk` and the time to live `expires_at`."""

import math
from collections.abc import Iterator

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from asya import registry, stores
from asya.protocol import names
from asya.protocol.keys import DATA_PREFIX, RESULTS_PREFIX
from asya.protocol.table_keys import EXPIRY
from asya_infra.acknowledgements import acknowledge, acknowledge_check
from asya_infra.constructs.encryption import customer_key
from asya_infra.constructs.triggers import bucket_notifications
from asya_infra.mesh import Mesh

_DAY = 86400
_UNFINISHED_UPLOADS = 7
_KEY_OF_UPLOAD = "s3:x-amz-server-side-encryption-aws-kms-key-id"
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
        bucket.add_to_resource_policy(_refusal_of_other_keys(bucket, mesh.kms_key))
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


def _refusal_of_other_keys(bucket: s3.Bucket, kms_key: str | None) -> iam.PolicyStatement:
    """Refuse objects under a key of their writer, except data of users (`protocol §4.claim-check.keys`).

    For each reader of such an object S3 answers as it does when the mesh lacks a permission.
    """
    own = {} if kms_key is None else {"StringNotEquals": {_KEY_OF_UPLOAD: [kms_key, kms_key.rpartition("/")[2]]}}
    return iam.PolicyStatement(
        effect=iam.Effect.DENY,
        principals=[iam.AnyPrincipal()],
        actions=["s3:PutObject"],
        not_resources=[bucket.arn_for_objects(f"{DATA_PREFIX}*")],
        conditions={"Null": {_KEY_OF_UPLOAD: "false"}, **own},
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


class Table(Construct):
    """An on-demand table with point-in-time recovery.

    Attributes:
        changes: the ARN of the stream; None without one.
    """

    def __init__(self, scope: Construct, mesh: Mesh, declared: stores.Table, removal: RemovalPolicy) -> None:
        super().__init__(scope, declared.name)
        key = customer_key(self, mesh)
        table = dynamodb.Table(
            self,
            "Table",
            table_name=names.table_name(mesh.namespace, declared.name),
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # Without a key the template says nothing, and DynamoDB uses one of its own.
            encryption=None if key is None else dynamodb.TableEncryption.CUSTOMER_MANAGED,
            encryption_key=key,
            time_to_live_attribute=EXPIRY,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES if declared.streams_changes else None,
            removal_policy=removal,
        )
        self.changes = table.table_stream_arn
        for index in declared.indexes:
            _add_index(table, index)


def _add_index(table: dynamodb.Table, index: stores.Index) -> None:
    table.add_global_secondary_index(
        index_name=index.name,
        partition_key=dynamodb.Attribute(name=index.partition, type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name=index.sort, type=dynamodb.AttributeType.STRING),
        projection_type=dynamodb.ProjectionType.INCLUDE if index.included else dynamodb.ProjectionType.KEYS_ONLY,
        non_key_attributes=list(index.included) or None,
    )
