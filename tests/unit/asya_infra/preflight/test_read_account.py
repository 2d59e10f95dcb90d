"""Reading from AWS what an account has. Stubs hold requests and answers against the service models of botocore."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

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
from asya_infra.preflight.demand import Demand, NamedResource
from asya_infra.preflight.read_account import _code_key, read_account, read_identity

REGION = "eu-central-1"
ACCOUNT = "123456789012"
IDENTITY = Identity(ACCOUNT, "arn:aws:iam::123456789012:user/me", REGION)
TASKS, SINK = NamedResource("table", "asya-shop-tasks"), NamedResource("table", "asya-shop-sink")
BILL = NamedResource("queue", "asya-shop-bill")
LOGS = NamedResource("log group", "/aws/lambda/asya-shop-bill")
API_LOGS = NamedResource("log group", "/aws/vendedlogs/asya-shop-gateway")
BUCKET = NamedResource("bucket", f"asya-shop-{ACCOUNT}-{REGION}")
DEMAND = Demand(
    namespace="shop",
    stacks=("Asya-shop-queues-0", "Asya-shop-state"),
    reserved={"asya-shop-x-gateway-live": 50},
    resources=(TASKS, SINK, BILL, LOGS, API_LOGS, NamedResource("bucket", "asya-shop-{account}-{region}")),
)


@cache  # a client takes a tenth of a second
def client_of(service: str) -> Any:
    return boto3.Session("testing", "testing", region_name=REGION).client(service)  # type: ignore[call-overload]


class Session:
    """The stubbed clients of one account. A call without a prepared answer fails, so its fact is unknown."""

    region_name = REGION

    def __init__(self) -> None:
        self._stubbers: dict[str, Stubber] = {}

    def client(self, service: str) -> Any:
        return self.stub(service).client

    def stub(self, service: str) -> Stubber:
        if service not in self._stubbers:
            self._stubbers[service] = Stubber(client_of(service))
            self._stubbers[service].activate()
        return self._stubbers[service]

    def close(self) -> None:
        for stubber in self._stubbers.values():
            stubber.assert_no_pending_responses()
            stubber.deactivate()


@pytest.fixture
def session() -> Iterator[Session]:
    made = Session()
    yield made
    made.close()


def read(session: Session) -> Account:
    return read_account(session, DEMAND, IDENTITY)


def test_the_caller_with_the_region_of_the_session(session: Session) -> None:
    session.stub("sts").add_response("get_caller_identity", {"Account": ACCOUNT, "Arn": IDENTITY.arn})
    assert read_identity(session) == IDENTITY


def test_invalid_credentials_are_unknown(session: Session) -> None:
    session.stub("sts").add_client_error("get_caller_identity", "ExpiredToken", "expired")
    identity = read_identity(session)
    assert isinstance(identity, Unknown)
    assert "ExpiredToken" in identity.reason


def test_the_version_of_the_bootstrap(session: Session) -> None:
    ssm, asked = session.stub("ssm"), {"Name": "/cdk-bootstrap/hnb659fds/version"}
    ssm.add_client_error("get_parameter", "ParameterNotFound", expected_params=asked)
    ssm.add_response("get_parameter", {"Parameter": {"Value": "30"}}, asked)
    assert read(session).bootstrap_version is None
    assert read(session).bootstrap_version == 30


def test_the_concurrency_with_that_of_the_deployed_functions(session: Session) -> None:
    functions = session.stub("lambda")
    limit = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 850}
    functions.add_response("get_account_settings", {"AccountLimit": limit})
    asked = {"FunctionName": "asya-shop-x-gateway-live"}
    functions.add_response("get_function_concurrency", {"ReservedConcurrentExecutions": 50}, asked)
    assert read(session).concurrency == Concurrency(1000, 850, own=50)


def test_a_function_that_is_not_deployed_has_no_reservation(session: Session) -> None:
    functions = session.stub("lambda")
    limit = {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}
    functions.add_response("get_account_settings", {"AccountLimit": limit})
    functions.add_client_error("get_function_concurrency", "ResourceNotFoundException")
    assert read(session).concurrency == Concurrency(10, 10)


def test_the_quota_of_emr_serverless(session: Session) -> None:
    quotas, asked = session.stub("service-quotas"), {"ServiceCode": "emr-serverless", "QuotaCode": "L-D05C8A75"}
    quotas.add_response("get_service_quota", {"Quota": {"Value": 64.0}}, asked)
    assert read(session).spark_vcpu == 64
    # A quota that was never changed may only have a default.
    quotas.add_client_error("get_service_quota", "NoSuchResourceException")
    quotas.add_response("get_aws_default_service_quota", {"Quota": {"Value": 16.0}}, asked)
    assert read(session).spark_vcpu == 16


def test_roles_and_policies_with_their_quotas(session: Session) -> None:
    summary = {"Roles": 40, "RolesQuota": 1000, "Policies": 20, "PoliciesQuota": 1500}
    session.stub("iam").add_response("get_account_summary", {"SummaryMap": summary})
    assert read(session).iam == IamUsage(40, 1000, 20, 1500)


def test_a_refused_read_is_unknown_and_names_the_action(session: Session) -> None:
    session.stub("iam").add_client_error("get_account_summary", "AccessDenied", "not authorized")
    usage = read(session).iam
    assert isinstance(usage, Unknown)
    assert usage.action == "iam:GetAccountSummary"
    assert "not authorized" in usage.reason


def summary(kind: str, physical_id: str, status: str = "CREATE_COMPLETE") -> dict[str, Any]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return {
        "LogicalResourceId": "Any",
        "ResourceType": kind,
        "PhysicalResourceId": physical_id,
        "ResourceStatus": status,
        "LastUpdatedTimestamp": now,
    }


def test_the_stacks_with_their_resources(session: Session) -> None:
    stacks = session.stub("cloudformation")
    missing = "Stack with id Asya-shop-queues-0 does not exist"
    stacks.add_client_error("describe_stacks", "ValidationError", missing)
    status = {
        "StackName": "Asya-shop-state",
        "CreationTime": datetime(2026, 1, 1, tzinfo=UTC),
        "StackStatus": "UPDATE_COMPLETE",
    }
    stacks.add_response("describe_stacks", {"Stacks": [status]}, {"StackName": "Asya-shop-state"})
    first = [
        summary("AWS::DynamoDB::Table", TASKS.name),
        summary("AWS::DynamoDB::Table", SINK.name, "DELETE_COMPLETE"),
        summary("AWS::IAM::Role", "asya-shop-bill-role"),
    ]
    second = [summary("AWS::SQS::Queue", f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{BILL.name}")]
    stacks.add_response("list_stack_resources", {"StackResourceSummaries": first, "NextToken": "more"})
    stacks.add_response("list_stack_resources", {"StackResourceSummaries": second})
    stack = DeployedStack("UPDATE_COMPLETE", frozenset({TASKS, BILL}), roles=1)
    assert read(session).stacks == {"Asya-shop-state": stack}


def test_existing_resources_with_a_name_of_the_mesh(session: Session) -> None:
    session.stub("dynamodb").add_response("list_tables", {"TableNames": [TASKS.name, "asya-shop-staging-tasks"]})
    prefix = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/"
    urls = {"QueueUrls": [prefix + BILL.name, f"{prefix}asya-shop-staging-bill"]}
    session.stub("sqs").add_response("list_queues", urls, {"QueueNamePrefix": "asya-shop-"})
    for group, folder in ((LOGS, "lambda"), (API_LOGS, "vendedlogs")):
        asked = {"logGroupNamePrefix": f"/aws/{folder}/asya-shop-"}
        session.stub("logs").add_response("describe_log_groups", {"logGroups": [{"logGroupName": group.name}]}, asked)
    session.stub("s3").add_response("head_bucket", {}, {"Bucket": BUCKET.name})
    assert read(session).existing == {
        "table": {TASKS},
        "queue": {BILL},
        "log group": {LOGS, API_LOGS},
        "bucket": {BUCKET},
    }


def test_a_free_name_of_the_bucket(session: Session) -> None:
    session.stub("s3").add_client_error("head_bucket", "404", http_status_code=404)
    assert read(session).existing["bucket"] == frozenset()


def test_a_bucket_that_may_not_be_seen_is_unknown(session: Session) -> None:
    session.stub("s3").add_client_error("head_bucket", "403", "Forbidden", http_status_code=403)
    assert isinstance(read(session).existing["bucket"], Unknown)


KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
METADATA = {
    "KeyId": KEY.rpartition("/")[2],
    "Arn": KEY,
    "KeyState": "Enabled",
    "KeyUsage": "ENCRYPT_DECRYPT",
    "KeySpec": "SYMMETRIC_DEFAULT",
}


def read_key(session: Session) -> CustomerKey | Unknown | None:
    return read_account(session, replace(DEMAND, kms_key=KEY), IDENTITY).kms_key


def test_the_customer_managed_key_with_the_principals_of_its_policy(session: Session) -> None:
    policy = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "logs.eu-central-1.amazonaws.com"}}]}
    kms = session.stub("kms")
    kms.add_response("describe_key", {"KeyMetadata": METADATA}, {"KeyId": KEY})
    kms.add_response("get_key_policy", {"Policy": json.dumps(policy)}, {"KeyId": KEY, "PolicyName": "default"})
    principals = frozenset({"logs.eu-central-1.amazonaws.com"})
    assert read_key(session) == CustomerKey("Enabled", "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT", principals, principals)


def test_a_key_without_access_to_its_policy(session: Session) -> None:
    kms = session.stub("kms")
    kms.add_response("describe_key", {"KeyMetadata": METADATA})
    kms.add_client_error("get_key_policy", "AccessDeniedException")
    key = read_key(session)
    assert isinstance(key, CustomerKey)
    assert isinstance(key.principals, Unknown)
    assert key.principals.action == "kms:GetKeyPolicy"


def test_a_missing_key_and_one_that_may_not_be_read(session: Session) -> None:
    kms = session.stub("kms")
    kms.add_client_error("describe_key", "NotFoundException")
    assert read_key(session) is None
    kms.add_client_error("describe_key", "AccessDeniedException")
    denied = read_key(session)
    assert isinstance(denied, Unknown)
    assert denied.action == "kms:DescribeKey"


def test_without_a_key_nothing_is_read_of_kms(session: Session) -> None:
    assert read(session).kms_key is None


def test_the_buckets_and_buses_of_triggers(session: Session) -> None:
    s3, asked = session.stub("s3"), {"Bucket": "partner-files"}
    call = "get_bucket_notification_configuration"
    s3.add_response(call, {"EventBridgeConfiguration": {}}, asked)
    s3.add_response(call, {"QueueConfigurations": []}, {"Bucket": "quiet"})
    s3.add_client_error(call, "NoSuchBucket", expected_params={"Bucket": "gone"})
    s3.add_client_error(call, "AccessDenied", expected_params={"Bucket": "secret"})
    events = session.stub("events")
    events.add_response("list_event_buses", {"EventBuses": [{"Name": "default"}], "NextToken": "2"}, {})
    events.add_response("list_event_buses", {"EventBuses": [{"Name": "shop"}]}, {"NextToken": "2"})
    wanted = replace(
        DEMAND, resources=(), event_buckets=("partner-files", "quiet", "gone", "secret"), event_buses=("shop",)
    )
    account = read_account(session, wanted, IDENTITY)
    secret = account.event_buckets["secret"]
    assert isinstance(secret, Unknown)
    assert secret.action == "s3:GetBucketNotification"
    assert {**account.event_buckets, "secret": "unknown"} == {
        "partner-files": True,
        "quiet": False,
        "gone": None,
        "secret": "unknown",
    }
    assert account.event_buses == {"default", "shop"}


CODE_BUCKET = {"Bucket": f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"}


def encrypted(**default: str) -> dict[str, Any]:
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", **default}}
    return {"ServerSideEncryptionConfiguration": {"Rules": [rule]}}


def code_key(session: Session) -> CodeKey | Unknown:
    return _code_key(session, replace(DEMAND, runs_jobs=True), IDENTITY)


def test_the_key_of_the_code_of_jobs(session: Session) -> None:
    s3, kms = session.stub("s3"), session.stub("kms")
    s3.add_response("get_bucket_encryption", encrypted(), CODE_BUCKET)
    assert code_key(session) == CodeKey()
    s3.add_response("get_bucket_encryption", encrypted(KMSMasterKeyID="alias/aws/s3"), CODE_BUCKET)
    assert code_key(session) == CodeKey()
    s3.add_response("get_bucket_encryption", encrypted(KMSMasterKeyID=KEY), CODE_BUCKET)
    kms.add_response(
        "describe_key", {"KeyMetadata": {**METADATA, "Arn": KEY, "KeyManager": "CUSTOMER"}}, {"KeyId": KEY}
    )
    root = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}
    kms.add_response("get_key_policy", {"Policy": json.dumps({"Statement": [root]})})
    expected = CodeKey(KEY, frozenset({f"arn:aws:iam::{ACCOUNT}:root"}))
    assert code_key(session) == expected
    s3.add_client_error("get_bucket_encryption", "AccessDenied")
    denied = code_key(session)
    assert isinstance(denied, Unknown)
    assert denied.action == "s3:GetEncryptionConfiguration"
