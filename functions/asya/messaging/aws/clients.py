"""The process's AWS clients, one of each, made when first needed.

Timeouts are short against the functions' own: an endpoint that hangs must become an error while there is still time to
report it. Retries are the SDK's standard mode; callers add none of their own for throttling or broken connections.
"""

from functools import cache
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_emr_serverless import EMRServerlessClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

_CONNECT_TIMEOUT = 2  # seconds
_ATTEMPTS = 3  # the first included
# The senders, reporters and table writers of one function share its clients.
_CONNECTIONS = 16


@cache
def sqs() -> "SQSClient":
    """SQS; its answers take milliseconds, so that five seconds without one mean trouble."""
    return boto3.client("sqs", config=_config(read_timeout=5))


@cache
def dynamodb() -> "DynamoDBClient":
    """DynamoDB, low level: items are typed and made by our own records."""
    return boto3.client("dynamodb", config=_config(read_timeout=5))


@cache
def s3() -> "S3Client":
    """S3; objects may be large, hence the longer timeout between two pieces of one."""
    return boto3.client("s3", config=_config(read_timeout=20))


@cache
def emr_serverless() -> "EMRServerlessClient":
    """EMR Serverless; asked once, because its quotas are small: being throttled is an answer, and the caller waits."""
    return boto3.client("emr-serverless", config=_config(read_timeout=20, attempts=1))


@cache
def events() -> "EventBridgeClient":
    """EventBridge."""
    return boto3.client("events", config=_config(read_timeout=5))


@cache
def kms() -> "KMSClient":
    """KMS."""
    return boto3.client("kms", config=_config(read_timeout=5))


def _config(read_timeout: int, attempts: int = _ATTEMPTS) -> Config:
    return Config(
        connect_timeout=_CONNECT_TIMEOUT,
        read_timeout=read_timeout,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=_CONNECTIONS,
        # What is sent is made of typed objects; walking it once more takes as long as all the rest of a batch of writes.
        parameter_validation=False,
    )
