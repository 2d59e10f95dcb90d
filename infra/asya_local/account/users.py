"""The IAM users of a local cloud: the deployer and the operator of the mesh."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any

from asya.protocol import names
from asya.protocol.job_runs import RUNS_PREFIX
from asya.protocol.keys import INBOX_PREFIX
from asya_local.account.clients import aws_client
from asya_local.account.keys import ACCOUNT_ID, REGION, AccessKey

DEPLOYER = "asya-deployer"
_ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"


def make_deployer(endpoint: str, root: AccessKey) -> AccessKey:
    """Create the IAM user that deploys. Nothing else uses the root key."""
    iam = aws_client("iam", endpoint, root)
    iam.create_user(UserName=DEPLOYER)
    iam.attach_user_policy(UserName=DEPLOYER, PolicyArn=_ADMINISTRATOR)
    return _new_key(iam, DEPLOYER)


def operator_name(namespace: str) -> str:
    """Return the name of the operator, whose key is in `local.json`."""
    return f"asya-{namespace}-operator"


@dataclass(frozen=True, kw_only=True)
class OperatorScope:
    """The resources of a deployed mesh that its operator uses. `data` and `results` are `bucket/prefix`."""

    namespace: str
    api_id: str
    bucket: str
    """The mesh's own bucket."""
    data: str
    results: str
    tasks_table: str
    source_buckets: tuple[str, ...] = ()
    """The buckets of others whose objects start tasks."""
    source_buses: tuple[str, ...] = ()
    """The event buses whose events start tasks."""


def make_operator(
    endpoint: str, deployer: AccessKey, scope: OperatorScope, current: AccessKey | None = None
) -> AccessKey:
    """Create the operator with a key, or update its policy; the current key stays, because running programs use it."""
    iam = aws_client("iam", endpoint, deployer)
    name = operator_name(scope.namespace)
    with contextlib.suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_user(UserName=name)
    document = {"Version": "2012-10-17", "Statement": operator_statements(scope)}
    iam.put_user_policy(UserName=name, PolicyName="operate", PolicyDocument=json.dumps(document))
    key_ids = [key["AccessKeyId"] for key in iam.list_access_keys(UserName=name)["AccessKeyMetadata"]]
    if current is not None and current.access_key in key_ids:
        return current
    for key_id in key_ids:
        iam.delete_access_key(UserName=name, AccessKeyId=key_id)
    return _new_key(iam, name)


def operator_statements(scope: OperatorScope) -> list[dict[str, Any]]:
    """Return the permissions to send envelopes, call the gateway, read the mesh, write data, and operate dead letters and runs.

    The operator also writes what starts tasks: objects of other buckets, and events.
    """
    queues = f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:asya-{scope.namespace}-"
    table = f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{scope.tasks_table}"
    pending = f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{names.table_name(scope.namespace, 'pending')}"
    reconciler = names.function_name(scope.namespace, names.RECONCILE)
    drains = {"Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["DRAIN#*"]}}}
    logs = f"arn:aws:logs:{REGION}:{ACCOUNT_ID}:log-group:/aws/lambda/asya-{scope.namespace}-*"
    buckets = [f"arn:aws:s3:::{location.partition('/')[0]}" for location in (scope.data, scope.results, scope.bucket)]
    sources = [f"arn:aws:s3:::{bucket}" for bucket in scope.source_buckets]
    buses = [f"arn:aws:events:{REGION}:{ACCOUNT_ID}:event-bus/{bus}" for bus in scope.source_buses]
    return [
        # On AWS these are rights of the programs that write there; here nobody else has a key.
        *([_allow(["s3:PutObject"], *(f"{bucket}/*" for bucket in sources))] if sources else []),
        *([_allow(["events:PutEvents"], *buses)] if buses else []),
        _allow(["sqs:SendMessage", "sqs:GetQueueUrl", "sqs:GetQueueAttributes"], f"{queues}*"),
        _allow(
            ["sqs:ReceiveMessage", "sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:StartMessageMoveTask"],
            f"{queues}*-dlq",
        ),
        _allow(["sqs:ListQueueTags"], f"{queues}*-dlq"),
        _allow(["sqs:ListQueues"], "*"),
        _allow(["execute-api:Invoke"], f"arn:aws:execute-api:{REGION}:{ACCOUNT_ID}:{scope.api_id}/*"),
        _allow(["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], f"arn:aws:s3:::{scope.data}*"),
        _allow(["s3:GetObject"], f"arn:aws:s3:::{scope.results}*"),
        _allow(["s3:PutObject"], f"arn:aws:s3:::{scope.bucket}/{INBOX_PREFIX}*"),
        _allow(["s3:ListBucket", "s3:GetBucketLocation"], *buckets),
        _allow(
            ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:DescribeTable"], table, f"{table}/index/*"
        ),
        _allow(["s3:GetObject"], f"arn:aws:s3:::{scope.bucket}/{RUNS_PREFIX}*"),
        _allow(["dynamodb:GetItem", "dynamodb:Query"], pending),
        _allow(["dynamodb:PutItem", "dynamodb:DeleteItem"], pending) | drains,
        _allow(["lambda:InvokeFunction"], f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{reconciler}"),
        _allow(
            ["emr-serverless:Get*", "emr-serverless:List*", "emr-serverless:CancelJobRun"],
            f"arn:aws:emr-serverless:{REGION}:{ACCOUNT_ID}:/*",
        ),
        _allow(["logs:FilterLogEvents", "logs:GetLogEvents", "logs:DescribeLogStreams"], logs, f"{logs}:*"),
    ]


def _allow(actions: list[str], *resources: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": sorted(set(resources))}


def _new_key(iam: Any, user: str) -> AccessKey:
    key = iam.create_access_key(UserName=user)["AccessKey"]
    return AccessKey(key["AccessKeyId"], key["SecretAccessKey"])
