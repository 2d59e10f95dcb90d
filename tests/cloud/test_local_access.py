"""Who may call a local cloud: everything on the machine reaches its ports, but only its own keys and its secret open it."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import boto3
import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from asya_infra.permissions.grant import Grant, of_leading_keys
from asya_local.account import ACCOUNT_ID, REGION, AccessKey
from asya_local.authentication.admission import SECRET_HEADER
from asya_local.servers import ServerOptions, healthy
from tests.cloud.browser import CHROMIUM, NO_CHROMIUM, open_page
from tests.cloud.stand_in_cloud import APPLICATION, BUCKET, SECONDS, StandIn, stand_in, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.cloud

SCOPE = f"20260101/{REGION}/sqs/aws4_request"
FORM = {"content-type": "application/x-www-form-urlencoded"}
LIST_QUEUES = urlencode({"Action": "ListQueues", "Version": "2012-11-05"})
REFUSED = (400, 401, 403)
INTERNAL = {
    "ministack": [
        ("GET", "/_ministack/health"), ("GET", "/_ministack/sqs/messages"), ("POST", "/_ministack/config"),
        ("POST", "/_ministack/reset"), ("GET", "/_localstack/health"), ("GET", f"/_ministack/lambda-code/{ACCOUNT_ID}/f"),
        ("POST", "/_local/caller"),
    ],
    "emr": [("GET", "/_local/health"), ("POST", "/_local/runs/0/kill"), ("GET", "/_local/runs/0"), ("POST", "/_local/faults")],
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    headers: dict[str, str]
    body: str


def call(url: str, method: str = "GET", headers: dict[str, str] | None = None, body: str | bytes = b"") -> Answer:
    """Make a request with exactly these headers."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
    try:
        connection.request(method, url.partition(address.netloc)[2] or "/", body=body or None, headers=headers or {})
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, names, response.read().decode(errors="replace"))
    finally:
        connection.close()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with stand_in(tmp_path_factory.mktemp("access"), ServerOptions()) as running:
        yield running


def signed(url: str, key: AccessKey, service: str, method: str = "POST", **headers: str) -> dict[str, str]:
    """Return the headers of a request, signed as an SDK does."""
    request = AWSRequest(method, url, headers=headers)
    SigV4Auth(Credentials(key.access_key, key.secret_key), service, REGION).add_auth(request)
    return dict(request.headers.items())


def test_root_needs_a_signature(cloud: StandIn) -> None:
    root = cloud.root.access_key
    strangers: dict[str, tuple[str, dict[str, str]]] = {"nothing": ("", {})}
    for key in ("test", ACCOUNT_ID, root):
        strangers |= {
            f"{key} in the query": (f"&X-Amz-Credential={key}/{SCOPE}", {}),
            f"{key} in the old query": (f"&AWSAccessKeyId={key}&Signature=x&SignatureVersion=2", {}),
            f"{key} with the old scheme": ("", {"authorization": f"AWS {key}:x"}),
            f"{key} without a signature": ("", {"authorization": f"AWS4-HMAC-SHA256 Credential={key}/{SCOPE}"}),
            f"{key} with a wrong signature": (
                "",
                signed(cloud.servers.endpoint + "/?" + LIST_QUEUES, AccessKey(key, "wrong"), "sqs", "GET"),
            ),
        }
    hidden = signed(cloud.servers.endpoint + "/?" + LIST_QUEUES, cloud.root, "sqs", "GET")
    strangers["another key beside a signature"] = (f"&X-Amz-Credential=test/{SCOPE}", hidden)
    opened = [
        name
        for name, (query, headers) in strangers.items()
        if call(f"{cloud.servers.endpoint}/?{LIST_QUEUES}{query}", headers=headers).status not in REFUSED
    ]
    assert opened == []
    assert call(f"{cloud.servers.endpoint}/?{LIST_QUEUES}", headers=hidden).status == 200


def test_a_stranger_creates_no_function(cloud: StandIn) -> None:
    body = json.dumps({"FunctionName": "mine", "Runtime": "python3.11", "Handler": "a.b", "Role": "r", "Code": {}})
    url = f"{cloud.servers.endpoint}/2015-03-31/functions?X-Amz-Credential=test/{SCOPE}"
    assert call(url, "POST", {"content-type": "application/json"}, body).status in REFUSED
    assert cloud.client("lambda").list_functions()["Functions"] == []


def test_internal_paths_need_the_secret(cloud: StandIn) -> None:
    servers = {"ministack": cloud.servers.endpoint, "emr": cloud.servers.emr_endpoint}
    for name, paths in INTERNAL.items():
        for method, path in paths:
            for headers in ({}, {SECRET_HEADER: "0" * 64}, {SECRET_HEADER: ""}):
                assert call(servers[name] + path, method, headers).status == 403, (name, path)
            api = {"host": f"00000000.execute-api.localhost:{cloud.servers.ministack_port}"}
            assert call(servers[name] + path, method, api).status == 403, (name, path)
    assert healthy(f"{servers['ministack']}/_ministack/health", cloud.secret)
    assert healthy(f"{servers['emr']}/_local/health", cloud.secret)


def test_buckets_have_no_anonymous_callers(cloud: StandIn) -> None:
    cloud.put("data/a.txt", "private")
    public = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": f"arn:aws:s3:::{BUCKET}/public/*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [public]})
    cloud.client("s3").delete_public_access_block(Bucket=BUCKET)
    cloud.client("s3").put_bucket_policy(Bucket=BUCKET, Policy=document)
    cloud.put("public/a.txt", "for everybody")
    endpoint = cloud.servers.endpoint
    for method, path in (
        ("GET", "/"), ("GET", f"/{BUCKET}"), ("GET", f"/{BUCKET}/data/a.txt"), ("GET", f"/{BUCKET}/public/a.txt"),
        ("PUT", f"/{BUCKET}/public/b.txt"), ("PUT", "/theirs"), ("DELETE", f"/{BUCKET}/public/a.txt"),
        ("POST", f"/{BUCKET}"),
    ):  # fmt: skip
        assert call(endpoint + path, method, body="x" if method in ("PUT", "POST") else "").status == 403, (
            method,
            path,
        )
    vhost = {"host": f"{BUCKET}.localhost:{cloud.servers.ministack_port}"}
    assert call(f"{endpoint}/public/a.txt", headers=vhost).status == 403


def test_presigned_urls_open_one_object_for_their_time(cloud: StandIn) -> None:
    cloud.put("data/presigned.txt", "here")
    s3 = cloud.client("s3")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "data/presigned.txt"})
    assert "AWSAccessKeyId" in url  # botocore's old scheme
    assert call(url).status in REFUSED
    config = Config(signature_version="s3v4")
    s3 = boto3.client(
        "s3",
        region_name=REGION,
        endpoint_url=cloud.servers.endpoint,
        aws_access_key_id=cloud.root.access_key,
        aws_secret_access_key=cloud.root.secret_key,
        config=config,
    )
    url = s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "data/presigned.txt"})
    assert call(url).body == "here"
    assert call(url.replace("presigned.txt", "a.txt")).status == 403
    assert call(url, "DELETE").status == 403
    assert call(url, headers={"x-amz-target": "AmazonSQS.ListQueues"}).status == 403
    assert call(url.replace("X-Amz-Expires=3600", "X-Amz-Expires=604800")).status == 403


def test_a_presigned_call_of_another_service(cloud: StandIn) -> None:
    request = AWSRequest("GET", f"{cloud.servers.endpoint}/?{LIST_QUEUES}")
    SigV4QueryAuth(Credentials(cloud.root.access_key, cloud.root.secret_key), "sqs", REGION, expires=60).add_auth(
        request
    )
    assert call(request.url).status == 200
    assert call(request.url.replace("ListQueues", "PurgeQueue")).status in REFUSED


def test_the_body_is_signed(cloud: StandIn) -> None:
    url = f"{cloud.servers.endpoint}/"
    request = AWSRequest("POST", url, data=LIST_QUEUES, headers=FORM)
    SigV4Auth(Credentials(cloud.root.access_key, cloud.root.secret_key), "sqs", REGION).add_auth(request)
    headers = dict(request.headers.items())
    assert call(url, "POST", headers, LIST_QUEUES).status == 200
    assert call(url, "POST", headers, LIST_QUEUES.replace("ListQueues", "PurgeQueue")).status in REFUSED


def test_functions_have_random_credentials(cloud: StandIn) -> None:
    iam, functions = cloud.client("iam"), cloud.client("lambda")
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = iam.create_role(RoleName="teller", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr(
            "teller.py",
            "import os, boto3\ndef tell(event, context):\n"
            "    arn = boto3.client('sts').get_caller_identity()['Arn']\n"
            "    return {'arn': arn, **{name: os.environ.get(name) for name in os.environ}}\n",
        )
    function = functions.create_function(
        FunctionName="teller",
        Runtime="python3.11",
        Handler="teller.tell",
        Role=role,
        Code={"ZipFile": code.getvalue()},
        Timeout=30,
    )
    arn = function["FunctionArn"]
    environment = json.load(functions.invoke(FunctionName="teller")["Payload"])
    functions.delete_function(FunctionName="teller")
    assert environment["arn"] == f"arn:aws:sts::{ACCOUNT_ID}:assumed-role/teller/teller"
    public = hashlib.sha256(f"{arn}:{role}".encode()).hexdigest()
    derived = {f"ASIA{public[:16].upper()}"} | {
        hashlib.sha256(f"{word}:{public}".encode()).hexdigest() for word in ("secret", "token")
    }
    assert derived.isdisjoint(environment.values())
    assert {cloud.secret, cloud.root.secret_key, cloud.root.access_key}.isdisjoint(environment.values())


def test_web_pages_and_other_hosts_are_refused(cloud: StandIn) -> None:
    for endpoint, service in ((cloud.servers.endpoint, "sqs"), (cloud.servers.emr_endpoint, "emr-serverless")):
        path = f"{endpoint}/?{LIST_QUEUES}" if service == "sqs" else f"{endpoint}/applications"
        own = signed(path, cloud.root, service, "GET")
        answer = call(path, headers=own)
        assert answer.status == 200
        assert not any(name.startswith("access-control-") for name in answer.headers)
        for origin in ("https://example.com", "null", endpoint):
            for headers in ({}, own, {SECRET_HEADER: cloud.secret}):
                answer = call(path, headers={**headers, "origin": origin})
                assert answer.status == 403
                assert not any(name.startswith("access-control-") for name in answer.headers)
        preflight = {"origin": "https://example.com", "access-control-request-method": "POST"}
        assert call(path, "OPTIONS", preflight).status == 403
        for host in (
            "example.com",
            f"example.com:{cloud.servers.ministack_port}",
            "127.0.0.1.example.com",
            "localhost.",
            "",
        ):
            assert call(path, headers={**signed(path, cloud.root, service, "GET", host=host), "host": host}).status in (
                400,
                403,
            )


@pytest.mark.slow
def test_a_page_in_a_browser_reaches_nothing(cloud: StandIn, tmp_path: Path) -> None:
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    create = urlencode({"Action": "CreateQueue", "QueueName": "from-a-page", "Version": "2012-11-05"})
    urls = [
        f"{cloud.servers.endpoint}/?X-Amz-Credential=test/{SCOPE}",
        f"{cloud.servers.emr_endpoint}/_local/runs/0/kill",
    ]
    script = f"""
const calls = {json.dumps(urls)}.flatMap((url) => [
  [url, {{method: "POST", mode: "no-cors", body: new URLSearchParams("{create}")}}],
  [url, {{method: "POST", body: new URLSearchParams("{create}")}}],
  [url, {{method: "POST", headers: {{"x-amz-target": "AmazonSQS.ListQueues"}}, body: "{{}}"}}],
  [url, {{}}],
]);
(async () => {{
  for (const [url, options] of calls) {{
    try {{
      const response = await fetch(url, options);
      post({{seen: response.type === "opaque" ? "" : await response.text()}});
    }} catch (error) {{
      post({{seen: ""}});
    }}
  }}
}})();
"""
    with open_page(script, tmp_path) as events:
        until(lambda: len(events) == 8, SECONDS, "the calls of the page")
    assert [event["seen"] for event in events] == [""] * 8
    assert cloud.client("sqs").list_queues(QueueNamePrefix="from-a-page").get("QueueUrls", []) == []


def test_the_page_of_a_run_opens_with_its_token(cloud: StandIn) -> None:
    run_id = cloud.start("print('hello')", name="page")
    client = cloud.client("emr-serverless")
    url = client.get_dashboard_for_job_run(applicationId=APPLICATION, jobRunId=run_id)["url"]
    cloud.client("emr-serverless").cancel_job_run(applicationId=APPLICATION, jobRunId=run_id)
    assert run_id in call(url).body
    assert call(url.replace(run_id, "0000000000000000")).status == 403
    assert call(url.partition("?")[0]).status == 403
    assert call(url.replace(run_id, f"{run_id}/kill"), "POST").status == 403
    assert call(url, headers={"origin": "https://example.com"}).status == 403


# What another user of the machine tries, with the standard library of this interpreter.
THIEF = """
import json, os, sys, urllib.error, urllib.request
folder, urls = sys.argv[1], sys.argv[2:]
def files():
    for parent, folders, names in os.walk(folder, onerror=lambda error: None):
        yield from (os.path.join(parent, name) for name in names)
def status(url):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, data=b""), timeout=30).status
    except urllib.error.HTTPError as error:
        return error.code
names = [*files(), *(os.path.join(folder, name) for name in ("keys.json", "local.json", "processes.json", "internal.secret"))]
print(json.dumps({"uid": os.getuid(), "read": [name for name in names if os.access(name, os.R_OK)],
                  "statuses": [status(url) for url in urls]}))
"""


def test_another_user_of_the_machine(cloud: StandIn) -> None:
    setpriv = shutil.which("setpriv")
    if os.getuid() or setpriv is None:
        pytest.skip("only root becomes another user (setpriv)")
    urls = [
        f"{cloud.servers.endpoint}/?{LIST_QUEUES}&X-Amz-Credential=test/{SCOPE}",
        f"{cloud.servers.endpoint}/?{LIST_QUEUES}&AWSAccessKeyId=test",
        f"{cloud.servers.endpoint}/_ministack/reset",
        f"{cloud.servers.emr_endpoint}/_local/runs/0/kill",
        f"{cloud.servers.emr_endpoint}/applications",
    ]
    # The folders above the state folder are open, so that only its own mode counts.
    closed = [parent for parent in cloud.folder.root.parents if not parent.stat().st_mode & 0o001]
    modes = {parent: parent.stat().st_mode for parent in closed}
    for parent in closed:
        parent.chmod(modes[parent] | 0o001)
    try:
        command = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]
        program = [shutil.which("python3", path=os.defpath) or sys.executable, "-I", "-c", THIEF]
        process = subprocess.run(
            [*command, *program, str(cloud.folder.root), *urls], capture_output=True, text=True, check=True, cwd="/"
        )
    finally:
        for parent in closed:
            parent.chmod(modes[parent])
    answer = json.loads(process.stdout)
    assert (answer["uid"], answer["read"]) == (65534, [])
    assert [status for status in answer["statuses"] if status not in REFUSED] == []


def test_the_files_of_a_cloud_are_its_owners(cloud: StandIn) -> None:
    assert cloud.folder.root.stat().st_mode & 0o777 == 0o700
    for name in ("processes.json", "internal.secret", "emr/settings.json"):
        assert (cloud.folder.root / name).stat().st_mode & 0o077 == 0, name


def test_a_stranger_is_told_in_the_format_of_the_service(cloud: StandIn) -> None:
    wrong = AccessKey(cloud.root.access_key, "wrong")
    calls = {"s3": "list_buckets", "iam": "list_users", "sqs": "list_queues", "sts": "get_caller_identity"}
    for service, action in calls.items():
        with pytest.raises(ClientError) as error:
            getattr(cloud.client(service, wrong), action)()
        assert error.value.response["Error"]["Code"] in ("SignatureDoesNotMatch", "InvalidSignatureException")
    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        cloud.client("dynamodb", AccessKey("test", "test")).list_tables()


def test_an_upload_in_signed_chunks(cloud: StandIn) -> None:
    """As the AWS SDK for Java sends it; botocore does not."""
    for text, status in (("hello", 200), ("h3llo", 403)):
        headers, body = in_chunks(cloud, "hello")
        assert (
            call(
                f"{cloud.servers.endpoint}/{BUCKET}/data/chunks.txt", "PUT", headers, body.replace("hello", text)
            ).status
            == status
        )
    assert cloud.client("s3").get_object(Bucket=BUCKET, Key="data/chunks.txt")["Body"].read() == b"hello"


def in_chunks(cloud: StandIn, text: str) -> tuple[dict[str, str], str]:
    """Return the headers and the body of an upload to data/chunks.txt with a signature for each chunk."""
    decoded = {"content-encoding": "aws-chunked", "x-amz-decoded-content-length": str(len(text))}
    request = AWSRequest("PUT", f"{cloud.servers.endpoint}/{BUCKET}/data/chunks.txt", headers=decoded)
    signer = ChunkSigner(Credentials(cloud.root.access_key, cloud.root.secret_key), "s3", REGION)
    signer.add_auth(request)
    previous = request.headers["authorization"].rpartition("=")[2]
    moment, scope, empty = (
        request.context["timestamp"],
        signer.credential_scope(request),
        hashlib.sha256(b"").hexdigest(),
    )
    body = ""
    for chunk in (text, ""):
        digest = hashlib.sha256(chunk.encode()).hexdigest()
        parts = ("AWS4-HMAC-SHA256-PAYLOAD", moment, scope, previous, empty, digest)
        previous = signer.signature("\n".join(parts), request)
        body += f"{len(chunk):x};chunk-signature={previous}\r\n{chunk}\r\n"
    return dict(request.headers.items()), body


class ChunkSigner(S3SigV4Auth):
    """Signs a request whose body follows in signed chunks."""

    def payload(self, request: AWSRequest) -> str:
        return "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"


def test_a_role_for_some_keys_reaches_no_item_of_others_by_any_call(cloud: StandIn) -> None:
    """Each call of DynamoDB names its keys in another place: items, conditions of queries, batches and transactions."""
    table = "keyed"
    cloud.client("dynamodb").create_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        BillingMode="PAY_PER_REQUEST",
    )
    calls = ("BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem")
    arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{table}"
    grant = Grant(tuple(f"dynamodb:{call}" for call in calls), (arn,), conditions=of_leading_keys(["a#*"]))
    dynamodb = cloud.client("dynamodb", cloud.user("keyed", grant.statement()))

    def item(key: str) -> dict[str, Any]:
        return {"pk": {"S": key}, "sk": {"S": "x"}}

    def may(call: str, **arguments: Any) -> bool:
        try:
            getattr(dynamodb, call)(**arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] != "AccessDeniedException":
                raise
            return False
        return True

    def query(condition: str, *keys: str) -> dict[str, Any]:
        values = {f":{number}": {"S": key} for number, key in enumerate(keys)}
        return {"TableName": table, "KeyConditionExpression": condition, "ExpressionAttributeValues": values}

    puts = {key: {"Put": {"TableName": table, "Item": item(key)}} for key in ("a#1", "b#1")}
    for key, allowed in (("a#1", True), ("b#1", False)):
        assert may("put_item", TableName=table, Item=item(key)) == allowed
        assert may("get_item", TableName=table, Key=item(key)) == allowed
        assert may("update_item", TableName=table, Key=item(key)) == allowed
        assert may("batch_get_item", RequestItems={table: {"Keys": [item("a#2"), item(key)]}}) == allowed
        requests = [{"PutRequest": {"Item": item("a#2")}}, {"DeleteRequest": {"Key": item(key)}}]
        assert may("batch_write_item", RequestItems={table: requests}) == allowed
        assert may("query", **query("pk = :0", key)) == allowed
        assert may("query", **query("sk = :0 AND pk = :1", "a#1", key)) == allowed
        second = {"Delete": {"TableName": table, "Key": item(key)}}
        assert (
            may("transact_write_items", TransactItems=[{"Put": {"TableName": table, "Item": item("a#3")}}, second])
            == allowed
        )
        assert may("transact_write_items", TransactItems=[puts[key]]) == allowed
        assert may("transact_get_items", TransactItems=[{"Get": {"TableName": table, "Key": item(key)}}]) == allowed
        assert may("delete_item", TableName=table, Key=item(key)) == allowed
    assert not may("scan", TableName=table)
