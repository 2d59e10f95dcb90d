"""The AWS account of a local cloud: its keys, clients and users, and the addresses of a mesh in it.

The access keys are random, and the same in each cloud of a state folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config

from asya.protocol import names
from asya.protocol.job_runs import RUNS_PREFIX
from asya.protocol.keys import INBOX_PREFIX
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import of_leading_keys
from asya_local.state_folder import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from asya_infra.mesh_file import LoadedMesh

ACCOUNT_ID = "000000000000"
REGION = "us-east-1"


@dataclass(frozen=True)
class AccessKey:
    """An AWS access key."""

    access_key: str
    secret_key: str

    def environment(self) -> dict[str, str]:
        """Return the key as environment variables of the AWS SDKs."""
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}


def root_key(path: Path) -> AccessKey:
    """Return the key of MiniStack's root user, who may do everything in this local cloud: that of the file, or a random one."""
    return read_keys(path)["root"] if path.exists() else new_root_key()


def new_root_key() -> AccessKey:
    """Make a random key for MiniStack's root user."""
    return AccessKey("AKIA" + secrets.token_hex(8).upper(), secrets.token_hex(20))


def write_keys(path: Path, keys: dict[str, AccessKey]) -> None:
    """Write the keys to a file with mode 600."""
    write_private(path, json.dumps({name: asdict(key) for name, key in keys.items()}, indent=2))


def read_keys(path: Path) -> dict[str, AccessKey]:
    """Read the keys.

    Raises:
        FileNotFoundError: The cloud is not up.
    """
    return {name: AccessKey(**key) for name, key in json.loads(path.read_text()).items()}


def keep_secret(path: Path) -> None:
    """Make the random secret of a cloud, and write it to a file with mode 600, unless the file is there."""
    if not read_secret(path):
        write_private(path, secrets.token_hex(32))


def read_secret(path: Path) -> str:
    """Return the secret of a cloud; empty if no cloud was up yet."""
    return path.read_text() if path.exists() else ""


_making = threading.Lock()
# The developer's own AWS configuration, in variables or files, must not reach a local cloud.
_NO_USER_CONFIGURATION = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
    "ca_bundle": (None, None, None, None),
}


def aws_client(service: str, endpoint: str, key: AccessKey, config: Config | None = None) -> Any:
    """Create a boto3 client of the local cloud with this key; ignore the developer's AWS configuration.

    Args:
        service: The name of the service.
        endpoint: The URL of the local cloud.
        key: The key.
        config: The settings of the client; they must have no proxies.
    """
    with _making:  # a session makes one client at a time
        build: Any = _session(key).client  # boto3's types accept literal service names only
        return build(service, endpoint_url=endpoint, config=config or Config(proxies={}))


@cache
def _session(key: AccessKey) -> boto3.Session:
    """Return the session of a key, which reads the model of each service once."""
    core = botocore.session.Session(session_vars=_NO_USER_CONFIGURATION)
    core.set_credentials(key.access_key, key.secret_key)
    return boto3.Session(botocore_session=core, region_name=REGION)


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
    pending = f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{names.table_name(scope.namespace, names.PENDING_TABLE)}"
    reconciler = names.function_name(scope.namespace, names.RECONCILE)
    drains = {"Condition": of_leading_keys(["DRAIN#*"])}
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


def local_addresses(loaded: LoadedMesh) -> Addresses:
    """Return the ARNs and URLs of a mesh on a local cloud, which ignores the account and the region of the mesh file."""
    storage = loaded.mesh.storage
    return Addresses(
        namespace=loaded.namespace,
        partition="aws",
        region=REGION,
        account=ACCOUNT_ID,
        url_suffix="amazonaws.com",
        data_bucket=storage.data_bucket,
        results_bucket=storage.results_bucket,
    )
