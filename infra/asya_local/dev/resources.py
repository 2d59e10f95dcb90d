"""Creates the resources of a mesh without CloudFormation: tables, buckets, queues, and the roles of job runs.

Everything is created if it is missing, and changed if it differs; nothing is removed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from asya import registry
from asya.capabilities.pauses.aws.notices import link_bus
from asya.protocol import names
from asya.protocol.task_key import SECRET_BYTES
from asya.senders.aws.key_items import KeyItems
from asya.senders.aws.role_list import RoleItems
from asya.senders.roles import ListChange
from asya_infra.commit_events import commit_pattern
from asya_infra.permissions.grant import document
from asya_infra.permissions.groups import lingering_actors
from asya_infra.permissions.job_runs import run_access, run_files
from asya_infra.resource_settings import QueueSettings, actor_queue, system_queues
from asya_local.account import ACCOUNT_ID, REGION, AccessKey, OperatorScope, aws_client, make_operator, operator_name
from asya_local.dev.deployment import CODE_BUCKET
from asya_local.triggers import Clients, ExistingSources, connect, create_existing

if TYPE_CHECKING:
    from datetime import datetime

    from asya.stores import Table
    from asya_local.dev.deployment import Deployment


def table_request(table: Table, name: str) -> dict[str, Any]:
    """Return the parameters of CreateTable for a table.

    Args:
        table: The table.
        name: Its name in AWS.
    """
    attributes = {"pk", "sk", *(key for index in table.indexes for key in (index.partition, index.sort))}
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    request: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": stream if table.streams_changes else {"StreamEnabled": False},
        "KeySchema": _schema("pk", "sk"),
        "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in sorted(attributes)],
    }
    if table.indexes:
        request["GlobalSecondaryIndexes"] = [
            {
                "IndexName": index.name,
                "KeySchema": _schema(index.partition, index.sort),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.included)}
                if index.included
                else {"ProjectionType": "KEYS_ONLY"},
            }
            for index in table.indexes
        ]
    return request


def _schema(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "emr-serverless.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}


@dataclass(frozen=True)
class Operator:
    """The IAM user of `local.json`."""

    key: AccessKey
    arn: str
    user_id: str


@dataclass(frozen=True)
class Resources:
    """The resources of one cloud."""

    endpoint: str
    root: AccessKey

    def create(self, mesh: Deployment, now: datetime) -> None:
        """Create the resources of a mesh."""
        self._create_tables(mesh)
        self._list_functions(mesh, now)
        for bucket in {mesh.addresses.bucket, mesh.addresses.data.bucket, mesh.addresses.results.bucket, CODE_BUCKET}:
            self._s3.create_bucket(Bucket=bucket)
        for name in mesh.table.actors:
            self._create_queue(mesh, name, actor_queue(name, mesh.table))
        for name, settings in system_queues(mesh.table).items():
            self._create_queue(mesh, name, settings)
        for heavy in mesh.heavy_actors:
            self._create_job_role(mesh, heavy)
        self._connect_sources(mesh)
        if mesh.table.has_callbacks:
            events = aws_client("events", self.endpoint, self.root)
            with suppress(events.exceptions.ResourceAlreadyExistsException):
                events.create_event_bus(Name=link_bus(mesh.loaded.namespace))

    def create_operator(self, mesh: Deployment, current: AccessKey | None = None) -> Operator:
        """Create the operator with the permissions that it has on a local cloud, or update these.

        Args:
            mesh: The mesh.
            current: The key of the operator, which stays; None before the first one.
        """
        addresses, namespace = mesh.addresses, mesh.loaded.namespace
        sources = ExistingSources.of(mesh.table, addresses)
        scope = OperatorScope(
            namespace=namespace,
            api_id="dev",
            bucket=addresses.bucket,
            data=f"{addresses.data.bucket}/{addresses.data.prefix}",
            results=f"{addresses.results.bucket}/{addresses.results.prefix}",
            tasks_table=names.table_name(namespace, "tasks"),
            source_buckets=sources.buckets,
            source_buses=sources.buses,
        )
        key = make_operator(self.endpoint, self.root, scope, current)
        user = self._iam.get_user(UserName=operator_name(namespace))["User"]
        return Operator(key, str(user["Arn"]), str(user["UserId"]))

    def _create_tables(self, mesh: Deployment) -> None:
        dynamodb = aws_client("dynamodb", self.endpoint, self.root)
        existing = set(dynamodb.list_tables()["TableNames"])
        for table in registry.of(mesh.table).tables.values():
            name = names.table_name(mesh.loaded.namespace, table.name)
            if name not in existing:
                dynamodb.create_table(**table_request(table, name))

    def _list_functions(self, mesh: Deployment, now: datetime) -> None:
        """List root, as which all functions sign, as the function that may report about all and tell `x-triggers` everything."""
        dynamodb = aws_client("dynamodb", self.endpoint, self.root)
        items = RoleItems(dynamodb, names.table_name(mesh.loaded.namespace, "sink"))
        items.write(ListChange(listed={ACCOUNT_ID: names.GATEWAY_API}, expiring=frozenset(), completes=True), now)
        keys = KeyItems(dynamodb, names.table_name(mesh.loaded.namespace, "sink"))
        keys.write(lambda: token_bytes(SECRET_BYTES), mesh.table.actors)

    def _create_queue(self, mesh: Deployment, actor: str, settings: QueueSettings) -> None:
        namespace, addresses = mesh.loaded.namespace, mesh.addresses
        self._sqs.create_queue(QueueName=names.dlq_name(namespace, actor))
        redrive = {"deadLetterTargetArn": addresses.dlq_arn(actor), "maxReceiveCount": settings.max_receives}
        attributes = {
            "VisibilityTimeout": str(settings.visibility_timeout),
            "RedrivePolicy": json.dumps(redrive),
        }
        name = names.queue_name(namespace, actor)
        try:
            self._sqs.create_queue(QueueName=name, Attributes=attributes)
        except self._sqs.exceptions.QueueNameExists:
            url = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
            self._sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)

    def _create_job_role(self, mesh: Deployment, actor: str) -> None:
        addresses = mesh.addresses
        arn = addresses.access_policy_prefix + names.access_policy_name(mesh.loaded.namespace, actor)
        code = addresses.objects_arn(CODE_BUCKET, "*")
        policy = json.dumps(document(run_access(mesh.loaded.mesh, addresses, actor, code)))
        try:
            self._iam.create_policy(PolicyName=addresses.access_policy_name(actor), PolicyDocument=policy)
        except self._iam.exceptions.EntityAlreadyExistsException:
            self._replace_policy(arn, policy)
        role = names.role_name(mesh.loaded.namespace, names.job_role(actor), REGION)
        with suppress(self._iam.exceptions.EntityAlreadyExistsException):
            self._iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(_TRUST))
        files = run_files(mesh.loaded.mesh, addresses, actor, code)
        self._iam.put_role_policy(RoleName=role, PolicyName="permissions", PolicyDocument=json.dumps(document(files)))
        self._iam.attach_role_policy(RoleName=role, PolicyArn=arn)

    def _replace_policy(self, arn: str, policy: str) -> None:
        """Replace the document of a policy, which has five versions at most."""
        for version in self._iam.list_policy_versions(PolicyArn=arn)["Versions"]:
            if not version["IsDefaultVersion"]:
                self._iam.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])
        self._iam.create_policy_version(PolicyArn=arn, PolicyDocument=policy, SetAsDefault=True)

    def _connect_sources(self, mesh: Deployment) -> None:
        """Connect what sends to queues of the mesh: the commits of resident runs, and the sources of triggers."""
        addresses = mesh.addresses
        commits = lingering_actors(mesh.table)
        if not commits and not mesh.table.triggers:
            return
        events = aws_client("events", self.endpoint, self.root)
        create_existing(ExistingSources.of(mesh.table, addresses), self._s3, events)
        connect(mesh.table, addresses, Clients(self._s3, events, self._sqs), sends_commits=bool(commits))
        if commits:
            rule = names.resource_name(mesh.loaded.namespace, "commits")
            events.put_rule(Name=rule, EventPattern=json.dumps(commit_pattern(addresses.bucket, commits)))
            events.put_targets(Rule=rule, Targets=[{"Id": "completion", "Arn": addresses.queue_arn(names.COMPLETION)}])

    @cached_property
    def _sqs(self) -> Any:
        return aws_client("sqs", self.endpoint, self.root)

    @cached_property
    def _s3(self) -> Any:
        return aws_client("s3", self.endpoint, self.root)

    @cached_property
    def _iam(self) -> Any:
        return aws_client("iam", self.endpoint, self.root)
