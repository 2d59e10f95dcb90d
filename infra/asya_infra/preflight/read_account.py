"""Reads from AWS what an account has. Reads only; a refused read is an unknown fact."""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from asya_infra.permissions.encryption import SOURCE_KEYS, allowed_principals
from asya_infra.preflight.account import (
    Account,
    CodeKey,
    Concurrency,
    CustomerKey,
    DeployedStack,
    IamUsage,
    Identity,
    Unknown,
)
from asya_infra.preflight.checks import SPARK_VCPU
from asya_infra.preflight.demand import MANAGED_POLICY, NAMED_KINDS, ROLE, Demand, NamedResource

T = TypeVar("T")

_LOGGING_SERVICES = ("lambda", "vendedlogs")
_KEY_OF_S3 = "alias/aws/s3"
_NOT_FOUND = frozenset({"404", "NoSuchBucket", "NotFound"})


def read_identity(session: Any) -> Identity | Unknown:
    """Return who calls; unknown without valid credentials."""
    return _read(lambda: _identity(session), "sts:GetCallerIdentity")


def read_account(session: Any, demand: Demand, identity: Identity) -> Account:
    """Return what the account of a session has of what a mesh asks.

    Args:
        session: a boto3 session in the account and region of the mesh.
        demand: what the mesh asks.
        identity: the caller.
    """
    named = demand.named(identity.account, identity.region)
    return Account(
        identity=identity,
        bootstrap_version=_read(lambda: _bootstrap_version(session, demand.bootstrap_parameter), "ssm:GetParameter"),
        concurrency=_read(
            lambda: _concurrency(session, demand), "lambda:GetAccountSettings and lambda:GetFunctionConcurrency"
        ),
        spark_vcpu=_read(lambda: _spark_vcpu(session), "servicequotas:GetServiceQuota"),
        iam=_read(lambda: _iam(session), "iam:GetAccountSummary"),
        stacks=_read(
            lambda: dict(_stacks(session, demand)),
            "cloudformation:DescribeStacks and cloudformation:ListStackResources",
        ),
        code_key=_code_key(session, demand, identity) if demand.runs_jobs else None,
        kms_key=None if demand.kms_key is None else _customer_key(session, demand.kms_key),
        existing={
            "table": _existing(named, lambda: _tables(session), "dynamodb:ListTables"),
            "bucket": _existing(named, lambda: _buckets(session, named), "s3:ListBucket"),
            "queue": _existing(named, lambda: _queues(session, demand.namespace), "sqs:ListQueues"),
            "log group": _existing(named, lambda: _log_groups(session, demand.namespace), "logs:DescribeLogGroups"),
        },
        event_buckets={bucket: _sends_events(session, bucket) for bucket in demand.event_buckets},
        event_buses=_read(lambda: _event_buses(session), "events:ListEventBuses")
        if demand.event_buses
        else frozenset(),
    )


def _read(read: Callable[[], T], action: str) -> T | Unknown:
    try:
        return read()
    except (ClientError, BotoCoreError) as error:
        return Unknown(str(error), action)


def _identity(session: Any) -> Identity:
    answer = session.client("sts").get_caller_identity()
    return Identity(answer["Account"], answer["Arn"], session.region_name)


def _bootstrap_version(session: Any, parameter: str) -> int | None:
    ssm = session.client("ssm")
    try:
        return int(ssm.get_parameter(Name=parameter)["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        return None


def _concurrency(session: Any, demand: Demand) -> Concurrency:
    functions = session.client("lambda")
    limit = functions.get_account_settings()["AccountLimit"]
    own = 0
    for name in demand.reserved:
        try:
            own += functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions", 0)
        except functions.exceptions.ResourceNotFoundException:
            continue
    return Concurrency(limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"], own)


def _spark_vcpu(session: Any) -> int:
    quotas = session.client("service-quotas")
    quota = {"ServiceCode": "emr-serverless", "QuotaCode": SPARK_VCPU}
    try:
        answer = quotas.get_service_quota(**quota)
    except quotas.exceptions.NoSuchResourceException:
        # The account has never changed the quota.
        answer = quotas.get_aws_default_service_quota(**quota)
    return int(answer["Quota"]["Value"])


def _iam(session: Any) -> IamUsage:
    summary = session.client("iam").get_account_summary()["SummaryMap"]
    return IamUsage(summary["Roles"], summary["RolesQuota"], summary["Policies"], summary["PoliciesQuota"])


def _customer_key(session: Any, arn: str) -> CustomerKey | Unknown | None:
    kms = session.client("kms")
    try:
        metadata = kms.describe_key(KeyId=arn)["KeyMetadata"]
    except kms.exceptions.NotFoundException:
        return None
    except (ClientError, BotoCoreError) as error:
        return Unknown(str(error), "kms:DescribeKey")
    kind = (metadata["KeyState"], metadata["KeyUsage"], metadata["KeySpec"])
    policy = _read(
        lambda: json.loads(kms.get_key_policy(KeyId=arn, PolicyName="default")["Policy"]), "kms:GetKeyPolicy"
    )
    if isinstance(policy, Unknown):
        return CustomerKey(*kind, policy)
    return CustomerKey(*kind, allowed_principals(policy), allowed_principals(policy, without=SOURCE_KEYS))


def _code_key(session: Any, demand: Demand, identity: Identity) -> CodeKey | Unknown:
    bucket = f"cdk-{demand.bootstrap_qualifier}-assets-{identity.account}-{identity.region}"

    def default_key() -> str:
        answer = session.client("s3").get_bucket_encryption(Bucket=bucket)
        [rule] = answer["ServerSideEncryptionConfiguration"]["Rules"]
        return str(rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID", ""))

    key = _read(default_key, "s3:GetEncryptionConfiguration")
    if isinstance(key, Unknown) or not key or key.endswith(_KEY_OF_S3):
        return key if isinstance(key, Unknown) else CodeKey()
    metadata = _read(lambda: session.client("kms").describe_key(KeyId=key)["KeyMetadata"], "kms:DescribeKey")
    if isinstance(metadata, Unknown) or metadata["KeyManager"] == "AWS":
        return metadata if isinstance(metadata, Unknown) else CodeKey()
    arn = metadata["Arn"]
    policy = _read(
        lambda: json.loads(session.client("kms").get_key_policy(KeyId=arn, PolicyName="default")["Policy"]),
        "kms:GetKeyPolicy",
    )
    return policy if isinstance(policy, Unknown) else CodeKey(arn, allowed_principals(policy))


def _sends_events(session: Any, bucket: str) -> bool | Unknown | None:
    try:
        configuration = session.client("s3").get_bucket_notification_configuration(Bucket=bucket)
    except (ClientError, BotoCoreError) as error:
        if isinstance(error, ClientError) and error.response["Error"]["Code"] in _NOT_FOUND:
            return None
        return Unknown(str(error), "s3:GetBucketNotification")
    return "EventBridgeConfiguration" in configuration


def _event_buses(session: Any) -> frozenset[str]:
    events, more = session.client("events"), dict[str, str]()
    buses: set[str] = set()
    while True:  # the client has no paginator for this call
        page = events.list_event_buses(**more)
        buses |= {bus["Name"] for bus in page["EventBuses"]}
        if not page.get("NextToken"):
            return frozenset(buses)
        more = {"NextToken": page["NextToken"]}


def _stacks(session: Any, demand: Demand) -> Iterator[tuple[str, DeployedStack]]:
    cloudformation = session.client("cloudformation")
    for stack in demand.stacks:
        try:
            status = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
        except ClientError as error:
            if "does not exist" in error.response["Error"].get("Message", ""):
                continue
            raise
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        resources = [each for page in pages for each in page["StackResourceSummaries"]]
        kinds = [each["ResourceType"] for each in resources if each["ResourceStatus"] != "DELETE_COMPLETE"]
        yield (
            stack,
            DeployedStack(
                status,
                frozenset(
                    NamedResource(NAMED_KINDS[each["ResourceType"]], _name(each))
                    for each in resources
                    if each["ResourceType"] in NAMED_KINDS and each["ResourceStatus"] != "DELETE_COMPLETE"
                ),
                kinds.count(ROLE),
                kinds.count(MANAGED_POLICY),
            ),
        )


def _name(resource: Any) -> str:
    """Return the name of a deployed resource. The physical id of a queue is its URL."""
    physical_id: str = resource.get("PhysicalResourceId", "")
    return physical_id.rpartition("/")[2] if resource["ResourceType"] == "AWS::SQS::Queue" else physical_id


def _existing(
    named: frozenset[NamedResource], read: Callable[[], Iterator[NamedResource]], action: str
) -> frozenset[NamedResource] | Unknown:
    return _read(lambda: named & frozenset(read()), action)


def _tables(session: Any) -> Iterator[NamedResource]:
    for page in session.client("dynamodb").get_paginator("list_tables").paginate():
        yield from (NamedResource("table", name) for name in page["TableNames"])


def _buckets(session: Any, named: frozenset[NamedResource]) -> Iterator[NamedResource]:
    s3 = session.client("s3")
    for resource in named:
        if resource.kind != "bucket":
            continue
        try:
            s3.head_bucket(Bucket=resource.name)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_FOUND:
                continue
            raise
        yield resource


def _queues(session: Any, namespace: str) -> Iterator[NamedResource]:
    pages = session.client("sqs").get_paginator("list_queues").paginate(QueueNamePrefix=f"asya-{namespace}-")
    for page in pages:
        yield from (NamedResource("queue", url.rpartition("/")[2]) for url in page.get("QueueUrls", []))


def _log_groups(session: Any, namespace: str) -> Iterator[NamedResource]:
    pages = session.client("logs").get_paginator("describe_log_groups")
    for service in _LOGGING_SERVICES:
        for page in pages.paginate(logGroupNamePrefix=f"/aws/{service}/asya-{namespace}-"):
            yield from (NamedResource("log group", group["logGroupName"]) for group in page["logGroups"])
