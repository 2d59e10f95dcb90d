"""Requests that no SDK makes: what strangers and queue senders have written to a local cloud to get past IAM, as data.

`STRANGER` goes unsigned to the hosts of the API and to the root; `SENDER` is signed with the key of a user that may send to the
queue of one actor. None may be answered with a success.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest

from asya_local.account import ACCOUNT_ID, REGION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.credentials import Credentials

FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/x-amz-json-1.0"}
BUCKET = f"asya-gateway-{ACCOUNT_ID}-{REGION}"
FUNCTIONS = "/2015-03-31/functions"
OWN, OTHER, LETTERS = (f"/{ACCOUNT_ID}/asya-gateway-{name}" for name in ("echo", "x-sink", "x-reports-dlq"))


class Raw(NamedTuple):
    """A request; without a service it is unsigned."""

    method: str
    path: str
    headers: Mapping[str, str] = MappingProxyType({})
    body: str = ""
    service: str = ""


_PATHS = (
    *(
        "/api/v1/mesh",
        "/api/v1/mesh/x",
        "/api/v1/mesh/x/stream",
        "/api/v1/mesh/x/stream/../..",
        "/api/v1/mesh/%2e%2e/stream",
    ),
    *(
        "/api/v1/mesh/..%2f..%2foperations/stream",
        "/api/v1/mesh//stream",
        "/health/../api/v1/mesh",
        "//health/api/v1/mesh",
    ),
    *(
        "/.well-known/agent-card.json/../api/v1/mesh",
        "/hooks/../api/v1/mesh",
        "/callbacks/../openapi.json",
        "/HEALTH",
        "/health/x",
    ),
    *(
        "/mcp",
        "/a2a",
        "/a2a/tasks/x:cancel",
        "/tools/call",
        "/openapi.json",
        "/api/v1/operations/mesh",
        "/api/v1/triggers",
    ),
    *(
        "/_ministack/health",
        "/_localstack/health",
        "/oauth2/token",
        "/v2/_catalog",
        "/v20180820/accesspoint/a",
        "/Execute",
    ),
)
_HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"x-http-method-override": "GET"},
    {"x-amzn-request-context": '{"authorizer": {"iam": {"userArn": "arn:aws:iam::1:root"}}}'},
    {"x-ministack-principal": "root"},
    {"x-amz-target": "AmazonSQS.ListQueues"},
    {"authorization": ""},
    {"authorization": "Bearer x"},
    {"authorization": "AWS test:test"},
    {"authorization": f"AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/execute-api/aws4_request"},
    {"x-amz-security-token": "x", "x-asya-local-secret": ""},
    {"connection": "authorization", "x-forwarded-for": "127.0.0.1"},
)
STRANGER = [
    *(Raw("GET", path, headers) for path, headers in product(_PATHS, _HEADERS)),
    *(Raw("POST", path, headers) for path, headers in product(_PATHS, _HEADERS[:3])),
]

_ARN = f"arn:aws:iam::{ACCOUNT_ID}:role/asya-gateway-x-clock-{REGION}"
_QUERIES = (
    *("Action=ListQueues", f"Action=AssumeRole&RoleSessionName=a&RoleArn={_ARN}"),
    *("Action=GetFederationToken&Name=x", f"Action=AssumeRoleWithWebIdentity&RoleSessionName=a&RoleArn={_ARN}"),
    *(
        "Action=CreateUser&UserName=x",
        "Action=CreateAccessKey",
        "Action=CreateAccessKey&UserName=alice",
        "Action=ListUsers",
    ),
    *("Action=PutUserPolicy&UserName=raw&PolicyName=x&PolicyDocument=%7B%7D", "Action=ListRoles", "Action=GetUser"),
)
_SQS = (
    *(
        "SendMessage",
        "SendMessageBatch",
        "ReceiveMessage",
        "PurgeQueue",
        "DeleteQueue",
        "GetQueueAttributes",
        "SetQueueAttributes",
    ),
    *(
        "StartMessageMoveTask",
        "AddPermission",
        "ListQueues",
        "ChangeMessageVisibility",
        "CreateQueue",
        "TagQueue",
        "sendmessage",
    ),
    " SendMessage",
)
_DYNAMODB = (
    *(
        "Scan",
        "Query",
        "GetItem",
        "PutItem",
        "ExecuteStatement",
        "BatchExecuteStatement",
        "ExecuteTransaction",
        "TransactGetItems",
    ),
    *(
        "BatchGetItem",
        "ListTables",
        "DescribeTable",
        "UpdateTable",
        "ExportTableToPointInTime",
        "ImportTable",
        "CreateBackup",
    ),
    *("TransactWriteItems", "BatchWriteItem"),
)
_REST = (
    *(
        ("GET", f"{FUNCTIONS}/"),
        ("POST", f"{FUNCTIONS}/asya-gateway-x-clock/invocations"),
        ("GET", "/v2/apis"),
        ("GET", "/schedules"),
    ),
    *(
        ("GET", "/2015-03-31/event-source-mappings/"),
        ("GET", f"{FUNCTIONS}/asya-gateway-x-roles"),
        ("GET", "/restapis"),
    ),
    ("POST", "/2021-11-15/functions/asya-gateway-echo/response-streaming-invocations"),
    *(
        ("GET", f"/{BUCKET}"),
        ("GET", f"/{BUCKET}/results/succeeded/x.json"),
        ("PUT", f"/{BUCKET}/inbox/echo/x.json"),
        ("GET", "/"),
    ),
    *(
        ("POST", f"/{BUCKET}?delete"),
        ("PUT", f"/{BUCKET}?policy"),
        ("GET", f"/{BUCKET}?policy"),
        ("PUT", f"/{BUCKET}/a?acl"),
    ),
    *(
        ("POST", f"/{BUCKET}/a?uploads"),
        ("GET", f"/{BUCKET}/../{BUCKET}/a"),
        ("GET", f"//{BUCKET}"),
        ("GET", f"/{BUCKET.upper()}"),
    ),
)
SENDER = [
    *(Raw("POST", "/", FORM, query, service) for query in _QUERIES for service in ("sts", "sqs", "iam")),
    *(
        Raw("POST", path, FORM, f"Action={action}&MessageBody=a&QueueUrl=http%3A%2F%2F127.0.0.1{queue}", "sqs")
        for path in ("/", OWN, OTHER, f"/?Action=SendMessage&MessageBody=a&QueueUrl=http%3A%2F%2F127.0.0.1{OWN}")
        for action in ("SendMessage", "ReceiveMessage", "PurgeQueue", "DeleteQueue")
        for queue in (OTHER, LETTERS, f"{OTHER}%3F{OWN}", f"{OTHER}%23{OWN}")
    ),
    *(
        Raw(
            "POST",
            "/",
            {**JSON, "x-amz-target": f"AmazonSQS.{action}"},
            f'{{"QueueUrl": "http://127.0.0.1{queue}"}}',
            "sqs",
        )
        for action in _SQS
        for queue in (LETTERS, f"{LETTERS}?{OWN}", f"{OWN}/../asya-gateway-x-sink")
    ),
    *(
        Raw(
            "POST",
            "/",
            {**JSON, "x-amz-target": f"DynamoDB_20120810.{call}"},
            '{"TableName": "asya-gateway-sink"}',
            service,
        )
        for call in _DYNAMODB
        for service in ("dynamodb", "sqs")
    ),
    *(Raw(method, path, {}, "", service) for method, path in _REST for service in ("lambda", "s3", "sqs")),
]

_ENVELOPE = '{"id": "raw", "route": {"prev": [], "curr": "echo", "next": []}, "payload": 1}'
_SEND = {"QueueUrl": f"http://127.0.0.1{OWN}", "MessageBody": _ENVELOPE}
ITS_OWN = [
    Raw("POST", "/", {**JSON, "x-amz-target": "AmazonSQS.SendMessage"}, json.dumps(_SEND), "sqs"),
    Raw("POST", "/", FORM, urlencode({"Action": "SendMessage", **_SEND}), "sqs"),
]
"""What the sender of `SENDER` may do."""


@dataclass(frozen=True)
class Wire:
    """Sends requests as they are written."""

    port: int
    credentials: Credentials | None = None

    def status(self, request: Raw, host: str = "", prefix: str = "") -> int:
        """Return the status of the answer; 0 if the server closes the connection without one."""
        host = host or f"127.0.0.1:{self.port}"
        headers = {"host": host, **request.headers}
        path = prefix + request.path
        if request.service:
            signed = AWSRequest(request.method, f"http://{host}{path}", data=request.body, headers=headers)
            kind = S3SigV4Auth if request.service == "s3" else SigV4Auth
            kind(self.credentials, request.service, REGION).add_auth(signed)
            headers = dict(signed.headers.items())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(request.method, path, body=request.body or None, headers=headers)
            return connection.getresponse().status
        except http.client.HTTPException:
            return 0
        finally:
            connection.close()
