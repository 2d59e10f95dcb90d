"""`storage.kms_key` in the templates: it encrypts everything that has data of envelopes, and each role may use it."""

import re
from typing import Any

import pytest

from tests.doubles.iam import Request, is_allowed
from tests.infra.private_mesh import KEY
from tests.infra.test_iam_matrix import statements

DECRYPT, GENERATE = "kms:Decrypt", "kms:GenerateDataKey"


def test_the_bucket_is_encrypted_with_a_bucket_key(private: Any) -> None:
    bucket = private.one("AWS::S3::Bucket")
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"] == [
        {
            "BucketKeyEnabled": True,
            "ServerSideEncryptionByDefault": {"KMSMasterKeyID": KEY, "SSEAlgorithm": "aws:kms"},
        }
    ]


def test_all_tables_are_encrypted(private: Any) -> None:
    tables = private.resources("AWS::DynamoDB::Table")
    assert len(tables) == 6
    for table in tables:
        assert table["SSESpecification"] == {"KMSMasterKeyId": KEY, "SSEEnabled": True, "SSEType": "KMS"}


def test_all_queues_are_encrypted_dead_letter_queues_too(private: Any) -> None:
    queues = private.resources("AWS::SQS::Queue")
    assert {queue["QueueName"].endswith("-dlq") for queue in queues} == {True, False}
    for queue in queues:
        assert (queue["KmsMasterKeyId"], queue["KmsDataKeyReusePeriodSeconds"]) == (KEY, 900)
        assert "SqsManagedSseEnabled" not in queue


def test_all_log_groups_and_environment_variables_are_encrypted(private: Any) -> None:
    groups, functions = private.resources("AWS::Logs::LogGroup"), private.resources("AWS::Lambda::Function")
    assert len(functions) > 20
    assert {group["KmsKeyId"] for group in groups} == {KEY}
    assert {function["KmsKeyArn"] for function in functions} == {KEY}


def test_notifications_of_pauses_are_encrypted_and_alarms_keep_a_key_of_their_own(private: Any) -> None:
    assert private.one("AWS::SNS::Topic", TopicName="asya-shop-pauses")["KmsMasterKeyId"] == KEY
    assert private.one("AWS::SNS::Topic", TopicName="asya-shop-alarms")["KmsMasterKeyId"].startswith("<Notifications")
    assert len(private.resources("AWS::KMS::Key")) == 2  # of alarms, and of critical ones


def test_emr_serverless_keeps_no_logs_under_a_key_of_aws(private: Any, shop: Any) -> None:
    variables = [private.function(name)["Environment"]["Variables"] for name in ("x-dispatch", "x-reconcile")]
    assert [each["ASYA_MANAGED_JOB_LOGS"] for each in variables] == ["false"] * 2
    assert "ASYA_MANAGED_JOB_LOGS" not in shop.function("x-dispatch")["Environment"]["Variables"]


def test_the_key_changes_no_names_and_replaces_nothing(private: Any, shop: Any) -> None:
    """Tables, queues and the bucket keep their logical ids, so an existing mesh takes the option in place."""
    for part, template in shop.templates.items():
        ids = {name: each["Type"] for name, each in template["Resources"].items()}
        private_ids = {name: each["Type"] for name, each in private.templates[part]["Resources"].items()}
        kept = {"AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::S3::Bucket", "AWS::Lambda::Function"}
        assert {name for name in ids if ids[name] in kept} == {
            name for name in private_ids if private_ids[name] in kept
        }


def may(mesh: Any, function: str, action: str, service: str) -> bool:
    """Whether a role may use the key through a service."""
    via = {"kms:ViaService": f"{service}.eu-west-1.amazonaws.com"}
    return is_allowed(statements(mesh, function), Request(action, KEY, via))


# For each kind of function: the services through which it may decrypt, and through which it may encrypt.
USES = {
    "intake": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),
    "score": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),  # with a circuit breaker
    "audit": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),  # deduplicates
    "crunch": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),
    "gather": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),
    "approve": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),  # claims the end of what cannot pause
    "x-sink": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),
    "x-checkpoint": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),
    "x-resume": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),
    "x-dispatch": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),
    "x-completion": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),
    "x-reconcile": ({"dynamodb", "s3", "sqs"}, {"sqs"}),
    "x-clock": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),
    "x-gateway-api": ({"dynamodb", "s3", "sqs"}, {"s3", "sqs"}),
    "x-gateway-stream": ({"dynamodb"}, set()),
    "x-gateway-live": ({"dynamodb"}, set()),
    "x-operations": ({"dynamodb", "s3", "sqs"}, set()),
    "x-push-feed": ({"dynamodb", "sqs"}, {"sqs"}),
    "x-push": ({"dynamodb", "sqs"}, set()),
    "x-reports": ({"dynamodb", "s3", "sqs"}, {"s3"}),
    "x-roles": ({"dynamodb"}, set()),
    "x-job-crunch": ({"s3"}, {"s3"}),
}
_ALIKE = {
    "free": "intake",
    "x-fan-in": "gather",
    "x-pause": "approve",
    "x-index": "crunch",
    "x-job-x-index": "x-job-crunch",
}
_SERVICES = ("dynamodb", "s3", "sqs", "sns", "secretsmanager", "lambda")


@pytest.mark.parametrize("function", sorted({*USES, *_ALIKE}))
def test_a_role_may_use_the_key_through_the_services_that_it_calls(private: Any, function: str) -> None:
    decrypts, generates = USES[_ALIKE.get(function, function)]
    assert {service for service in _SERVICES if may(private, function, DECRYPT, service)} == decrypts
    assert {service for service in _SERVICES if may(private, function, GENERATE, service)} == generates


@pytest.mark.parametrize("function", sorted({*USES, *_ALIKE}))
def test_no_role_may_use_the_key_by_itself_or_manage_it(private: Any, function: str) -> None:
    own = statements(private, function)
    actions = (DECRYPT, GENERATE, "kms:Encrypt", "kms:CreateGrant", "kms:DisableKey", "kms:PutKeyPolicy")
    assert [action for action in actions if is_allowed(own, Request(action, KEY, {}))] == []


def test_a_role_may_decrypt_the_environment_variables_of_its_own_function_only(private: Any) -> None:
    for role, function, allowed in (("score", "score", True), ("score", "intake", False), ("x-sink", "x-sink", True)):
        name = f"arn:aws:lambda:eu-west-1:111122223333:function:asya-shop-{function}"
        call = Request(DECRYPT, KEY, {"kms:EncryptionContext:aws:lambda:FunctionArn": name})
        assert is_allowed(statements(private, role), call) is allowed


def test_the_list_has_every_role(private: Any) -> None:
    roles = {role["RoleName"] for role in private.resources("AWS::IAM::Role") if "RoleName" in role}
    assert roles == {f"asya-shop-{function}-<Region>" for function in (*USES, *_ALIKE)}


def test_the_session_of_a_run_may_use_the_key_by_the_access_policy(private: Any) -> None:
    """A session has the permissions of both, of the role and of the policies that StartJobRun names."""
    policies = {
        each["ManagedPolicyName"]: each["PolicyDocument"]["Statement"]
        for each in private.resources("AWS::IAM::ManagedPolicy")
        if "ManagedPolicyName" in each
    }
    assert policies.keys() == {"<Region>-asya-shop-crunch-access", "<Region>-asya-shop-x-index-access"}
    for own in policies.values():
        via = {"kms:ViaService": "s3.eu-west-1.amazonaws.com"}
        assert all(is_allowed(own, Request(action, KEY, via)) for action in (DECRYPT, GENERATE))


def test_without_a_key_functions_have_permissions_for_none(example: Any) -> None:
    documents = [
        policy["PolicyDocument"] for role in example.resources("AWS::IAM::Role") for policy in role["Policies"]
    ]
    assert re.findall(r"'(kms:[^']*)'", str(documents)) == []


CODE, DATA = "arn:aws:s3:::cdk-hnb659fds-assets-111122223333-eu-west-1", "arn:aws:s3:::partner-files"
SOME_KEY = "arn:aws:kms:eu-west-1:444455556666:key/of-somebody"


def access(mesh: Any, actor: str) -> list[dict[str, Any]]:
    """The statements of the policy that a role of job runs has, and that StartJobRun names for the session of each run."""
    name = f"<Region>-asya-{actor}-access"
    [policy] = [each for each in mesh.resources("AWS::IAM::ManagedPolicy") if each.get("ManagedPolicyName") == name]
    statements: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return statements


def of_object(action: str, place: str, via: str = "s3.eu-west-1.amazonaws.com") -> Request:
    return Request(action, SOME_KEY, {"kms:ViaService": via, "kms:EncryptionContext:aws:s3:arn": place})


@pytest.mark.rule("10.job-reads")
def test_job_runs_may_decrypt_their_code_whatever_the_key_of_the_bootstrap_bucket(example: Any) -> None:
    """S3 names the object in the encryption context, or the bucket if that has a bucket key."""
    own = access(example, "flights-clean-flights")
    for place in (CODE, f"{CODE}/asya-flights/0123.zip"):
        assert is_allowed(own, of_object(DECRYPT, place))
        assert not is_allowed(own, of_object(GENERATE, place))
        assert not is_allowed(own, of_object(DECRYPT, place, via="dynamodb.eu-west-1.amazonaws.com"))
        assert not is_allowed(own, Request(DECRYPT, SOME_KEY, {"kms:EncryptionContext:aws:s3:arn": place}))
    for place in (DATA, f"{CODE}-of-others/key"):
        assert not is_allowed(own, of_object(DECRYPT, place))


def test_permissions_for_keys_follow_the_objects_that_access_grants(shop: Any) -> None:
    own = access(shop, "shop-crunch")
    buckets = {
        resource.partition("/")[0]
        for each in own
        if "s3:GetObject" in each["Action"] and each["Effect"] == "Allow"
        for resource in each["Resource"]
    }
    assert buckets == {"arn:<Partition>:s3:::asya-shop-<AccountId>-<Region>"}
    # `archives` lists an object of this bucket, which may be in another region.
    assert is_allowed(own, of_object(DECRYPT, f"{DATA}/models.tar.gz", via="s3.us-east-2.amazonaws.com"))
    assert not is_allowed(own, of_object(GENERATE, f"{DATA}/models.tar.gz"))
    intake = statements(shop, "intake")
    assert is_allowed(intake, of_object(DECRYPT, f"{DATA}/incoming/1.csv"))
    assert not is_allowed(intake, of_object(DECRYPT, f"{CODE}/asya-shop/0123.zip"))


def test_the_local_cloud_ignores_key_and_network(private_local: Any) -> None:
    text = str(private_local.templates)
    assert KEY not in text
    assert "VpcConfig" not in text


@pytest.mark.rule("4.claim-check.keys")
@pytest.mark.parametrize("name", ["private", "shop"])
def test_4_the_bucket_takes_objects_under_its_own_key_alone(name: str, request: pytest.FixtureRequest) -> None:
    """S3 would refuse each reader of another one as it refuses who lacks a permission, and that is an outage."""
    mesh: Any = request.getfixturevalue(name)
    (policy,) = mesh.resources("AWS::S3::BucketPolicy")
    everything = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    granted = [
        everything,
        *(each for each in policy["PolicyDocument"]["Statement"] if each["Action"] == "s3:PutObject"),
    ]
    (stated,) = granted[1:]
    (data,) = [stated["NotResource"]] if isinstance(stated["NotResource"], str) else stated["NotResource"]
    bucket = data.removesuffix("/data/*")
    assert bucket != data

    def may_put(key: str, kms_key: str | None) -> bool:
        context = {} if kms_key is None else {"s3:x-amz-server-side-encryption-aws-kms-key-id": kms_key}
        return is_allowed(granted, Request("s3:PutObject", f"{bucket}/{key}", context))

    other = KEY.replace("1234abcd", "5678abcd")
    for key in ("inbox/score/x.json", "payloads/score/x.json", "runs/bill/0000000001/attempts/a/commit.json"):
        assert may_put(key, None)
        assert not may_put(key, other)
        assert may_put(key, KEY) is may_put(key, KEY.rpartition("/")[2]) is (name == "private")
    assert may_put("data/raw/sales.csv", other)
