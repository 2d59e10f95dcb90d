"""The AWS clients of the process, each created on first use.

The timeouts are shorter than those of the functions, so a function can still report a hanging endpoint. Retries use the
standard mode of the SDK; callers do not retry throttling or broken connections themselves.
"""

import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Any

import botocore
import botocore.session
from botocore.config import Config

from asya.function.aws.outages import ServiceHealth, observe

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_emr_serverless import EMRServerlessClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

_CONNECT_TIMEOUT = 2  # seconds
_ATTEMPTS = 3  # the first included
_OLDEST_BOTOCORE = (1, 35, 2)  # the first whose PutObject of S3 has IfNoneMatch
# The senders, reporters and table writers of one function share its clients.
_CONNECTIONS = 16


class SdkError(RuntimeError):
    """The function's package brings an SDK that is too old."""


def require_conditional_writes(version: str) -> None:
    """Check that this botocore knows `IfNoneMatch`, which decides who forms a run and whose frames count.

    Raises:
        SdkError: if it does not.
    """
    installed = tuple(int(part) for part in version.split(".")[:3] if part.isdecimal())
    if installed < _OLDEST_BOTOCORE:
        oldest = ".".join(map(str, _OLDEST_BOTOCORE))
        raise SdkError(
            f"botocore {version} has no conditional writes to S3 (IfNoneMatch of PutObject); this function needs botocore "
            f"{oldest} or newer. Raise or remove the pins of boto3 and botocore in the requirements.txt beside the "
            "handlers, and deploy again"
        )


# At the cold start of every function: else the first write would fail, after the handler of its envelope has run.
require_conditional_writes(botocore.__version__)


HEALTH = ServiceHealth(time.time)
"""What this process knows of the services that the work on a message needs."""


@cache
def _own_session() -> botocore.session.Session:
    return botocore.session.get_session()


def credentials_source() -> Any:
    """Return what has the credentials of this process: the session of boto3 if the process has one, or one of botocore."""
    boto3 = sys.modules.get("boto3")
    return _own_session() if boto3 is None else boto3.DEFAULT_SESSION or boto3.Session()


def client_of(service: str, **options: Any) -> Any:
    """Make a client. Only a process that uses boto3 anyhow makes it by boto3, whose import is a tenth of a cold start.

    Args:
        service: the name of the service.
        options: those of a client.
    """
    boto3 = sys.modules.get("boto3")
    return _own_session().create_client(service, **options) if boto3 is None else boto3.client(service, **options)


@cache
def sqs() -> "SQSClient":
    """The client of SQS, which usually answers within milliseconds."""
    client: SQSClient = client_of("sqs", config=_config(read_timeout=5))
    # Only sending is work on a message. A message that cannot be hidden or deleted comes again.
    observe(client, "SQS", HEALTH, "SendMessage", "SendMessageBatch")
    return client


@cache
def dynamodb() -> "DynamoDBClient":
    """The low-level client of DynamoDB; the records of the mesh make the typed items."""
    client: DynamoDBClient = client_of("dynamodb", config=_config(read_timeout=5))
    observe(client, "DynamoDB", HEALTH)
    return client


@cache
def dynamodb_without_waiting() -> "DynamoDBClient":
    """The client of DynamoDB for reads that nobody waits for: it gives up after 2 s, and does not retry."""
    client: DynamoDBClient = client_of("dynamodb", config=_config(connect_timeout=0.5, read_timeout=1.5, attempts=1))
    return client


@cache
def s3() -> "S3Client":
    """The client of S3. Large objects need a longer timeout between two chunks."""
    client: S3Client = client_of("s3", config=_config(read_timeout=20))
    observe(client, "S3", HEALTH)
    return client


def results_s3(endpoint: str | None) -> "S3Client":
    """The client of the S3 that has the results.

    Args:
        endpoint: its address; None for AWS.
    """
    return s3() if endpoint is None else _s3_at(endpoint)


@cache
def _s3_at(endpoint: str) -> "S3Client":
    client: S3Client = client_of("s3", endpoint_url=endpoint, config=_config(read_timeout=20))
    return client


@cache
def emr_serverless() -> "EMRServerlessClient":
    """The client of EMR Serverless. It does not retry: the quotas are small, so a throttled caller waits."""
    client: EMRServerlessClient = client_of("emr-serverless", config=_config(read_timeout=20, attempts=1))
    return client


@cache
def events() -> "EventBridgeClient":
    """The client of EventBridge."""
    client: EventBridgeClient = client_of("events", config=_config(read_timeout=5))
    return client


@cache
def logs() -> "CloudWatchLogsClient":
    """The client of CloudWatch Logs, which searches for seconds."""
    client: CloudWatchLogsClient = client_of("logs", config=_config(read_timeout=10, attempts=2))
    return client


@cache
def cloudwatch() -> Any:
    """The client of the metrics of CloudWatch."""
    return client_of("cloudwatch", config=_config(read_timeout=5, attempts=2))


@cache
def functions() -> Any:
    """The client of Lambda."""
    return client_of("lambda", config=_config(read_timeout=5, attempts=2))


@cache
def secrets_manager() -> Any:
    """The client of Secrets Manager. Its timeouts fit into the margin of a function's own."""
    return client_of("secretsmanager", config=_config(read_timeout=3, attempts=2))


@cache
def ssm() -> Any:
    """The client of Systems Manager, for its Parameter Store."""
    return client_of("ssm", config=_config(read_timeout=3, attempts=2))


def _config(read_timeout: float, attempts: int = _ATTEMPTS, connect_timeout: float = _CONNECT_TIMEOUT) -> Config:
    return Config(
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=_CONNECTIONS,
        # Typed objects make all parameters; their validation would double the time of a batch of writes.
        parameter_validation=False,
    )
