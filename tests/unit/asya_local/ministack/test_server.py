"""MiniStack's wrapper checks tokens, trust policies and actions as AWS does, in the local cloud's own environment."""

import base64
import json
import subprocess
from collections.abc import Mapping
from typing import Any

import jwt
import pytest

from asya_infra.permissions.evaluation import Request, is_allowed
from tests.doubles.issuer import Issuer, new_key, public_jwk
from tests.paths import PROJECT

CLOUD_PYTHON = PROJECT / ".venv-cloud" / "bin" / "python"
CHECK = """
import json, runpy, sys
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
check = server["apigateway"]._verify_rs256_signature
print(json.dumps([check(token, key) for token, key in json.load(sys.stdin)]))
"""
TRUST = """
import json, runpy, sys
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
from ministack.core.iam_evaluator import EvalContext, evaluate_trust_policy
def admits(account, caller, document):
    context = EvalContext(caller, "Root", account, "sts:AssumeRole", "*", "eu-central-1")
    return evaluate_trust_policy(json.dumps(document), caller, context)
print(json.dumps([admits(*case) for case in json.load(sys.stdin)]))
"""
ACTIONS = """
import json, runpy, sys
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
from ministack.core.iam_actions import extract_iam_action
def action(target):
    return extract_iam_action("sqs", "POST", "/", {"x-amz-target": f"AmazonSQS.{target}"}, b"{}", {})
print(json.dumps([action(target) for target in json.load(sys.stdin)]))
"""
REST = """
import json, runpy, sys
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
from ministack.core.iam_actions import extract_iam_action
def action(service, method, path, headers=None, query=None):
    return extract_iam_action(service, method, path, headers or {}, b"", query or {})
print(json.dumps([action(*case) for case in json.load(sys.stdin)]))
"""
READINGS = """
import asyncio, itertools, json, runpy, sys
from urllib.parse import parse_qs, urlencode
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
if not json.load(sys.stdin):
    server["extract_iam_action"].__globals__["has_one_reading"] = lambda *_: True
from ministack import app as front
from ministack.core import iam_actions
from ministack.core.router import detect_service
from ministack.services import sqs
OWN, OTHER = (f"http://127.0.0.1:4566/000000000000/{name}" for name in ("own", "other"))
QUEUES = [OWN, OTHER, f"{OTHER}?/000000000000/own", f"{OTHER}#{OWN}", f"{OTHER}/../own", f"{OWN}/../other"]
SEND = [("Action", "SendMessage"), ("MessageBody", "a")]
FORMS = [[], SEND, *([*SEND, ("QueueUrl", each)] for each in QUEUES), [("QueueUrl", OTHER)], [("QueueUrl", OWN)],
         [("Action", "GetQueueUrl"), ("QueueName", "own")], [*SEND, ("QueueUrl", OWN), ("QueueUrl", OTHER)]]
JSON = [json.dumps({"QueueUrl": each, "MessageBody": "a"}) for each in QUEUES]
BOTH = [json.dumps({"QueueUrl": OWN, "MessageBody": f"&{urlencode([*SEND, ('QueueUrl', OTHER)])}&"})]
BODIES = [*map(urlencode, FORMS), *JSON, *BOTH]
PATHS = ["/", "/000000000000/other", "/000000000000/own/000000000000/other"]
TARGETS = ["", "AmazonSQS.SendMessage"]
TYPES = ["text/plain", "application/x-www-form-urlencoded", "Application/X-WWW-form-urlencoded"]
loop = asyncio.new_event_loop()
def call(headers, body, path="/", query={}):
    return loop.run_until_complete(sqs.handle_request("POST", path, headers, body, query))
def judged_and_sent(path, target, kind, url, body):
    sqs.reset()
    for name in ("own", "other"):
        call({"x-amz-target": "AmazonSQS.CreateQueue"}, json.dumps({"QueueName": name}).encode())
    headers = {"host": "127.0.0.1:4566", "authorization": "AWS4-HMAC-SHA256 Credential=a/b/us-east-1/sqs/aws4_request"}
    headers |= {"content-type": kind, "x-amz-target": target} if target else {"content-type": kind}
    query, body = parse_qs(urlencode(url), keep_blank_values=True), body.encode()
    given = front._routing_params("POST", path, headers, body, query)
    service = detect_service("POST", path, headers, given)
    request = (service, "POST", path, headers, body, given)
    action, arn = iam_actions.extract_iam_action(*request), iam_actions.extract_resource_arn(*request, "us-east-1", "000000000000")
    if service == "sqs":
        call(headers, body, path, query)
    sent = [name for name in ("own", "other") if sqs._queues[sqs._queue_url(name)]["messages"]]
    return [action, arn.rpartition(":")[2], sent]
cases = itertools.product(PATHS, TARGETS, TYPES, FORMS, BODIES)
judgements = [judged_and_sent(*case) for case in cases]
right = [["sqs:SendMessage", name, [name]] for name in ("own", "other")]
wrong = [each for each in judgements if each[2] and each not in right and not each[0].endswith("Call")]
print(json.dumps([len(wrong), sum(each in right for each in judgements)]))
"""
RESOURCES = """
import json, runpy, sys
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
from ministack.core.iam_actions import extract_resource_arn
def resource(service, target, body):
    headers = {"x-amz-target": target}
    return extract_resource_arn(service, "POST", "/", headers, body.encode(), {}, "eu-central-1", "1")
print(json.dumps([resource(*case) for case in json.load(sys.stdin)]))
"""
KEYS = """
import json, runpy, sys
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
from ministack.core import iam_evaluator
from ministack.services import s3
s3._bucket_encryption["secrets"] = "<A>aws:kms</A><KMSMasterKeyID>own</KMSMasterKeyID>"
iam_evaluator.authenticate = lambda *_: None
def allows(policies, session, action, arn):
    document = lambda statements: iam_evaluator.parse_policy_document({"Statement": statements})
    limits = [] if session is None else [[document(session)]]
    principal = iam_evaluator.PrincipalInfo("arn:aws:sts::1:assumed-role/a/b", "AssumedRole", "1", [document(policies)], {}, limits)
    iam_evaluator.resolve_principal = lambda *_: principal
    return iam_evaluator.enforce("key", action, "s3", "eu-west-1", resource_arn=arn, service_context={}) is None
print(json.dumps([allows(*case) for case in json.load(sys.stdin)]))
"""
CONDITIONS = """
import json, runpy, sys
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
from ministack.core import iam_actions
print(json.dumps([iam_actions.dynamodb_service_context(body.encode()) for body in json.load(sys.stdin)]))
"""
BODIES = """
import asyncio, datetime, json, os, runpy, sys
NOW = f"{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}"
os.environ |= {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "right", "MINISTACK_ACCOUNT_ID": "000000000000"}
os.environ |= {"GATEWAY_PORT": "4566"}
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
CHUNK = b"x" * 1024 * 1024
async def serve(method, path, headers):
    read, sent = 0, []
    async def receive():
        nonlocal read
        read += 1
        return {"type": "http.request", "body": CHUNK, "more_body": read < 399}
    async def send(message):
        sent.append(message)
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": [(name.encode(), value.format(now=NOW, day=NOW[:8]).encode()) for name, value in headers.items()]}
    await server["behind_tls"](scope, receive, send, secret="secret")
    return [read, sent[0]["status"]]
print(json.dumps([asyncio.run(serve(*case)) for case in json.load(sys.stdin)]))
"""
AT_AN_API = """
import asyncio, json, os, runpy, sys
os.environ |= {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "right", "MINISTACK_ACCOUNT_ID": "000000000000"}
os.environ |= {"GATEWAY_PORT": "4566"}
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
async def ask(method, host, path):
    sent = []
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}
    async def send(message):
        sent.append(message)
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": [(b"host", host.encode())]}
    await server["behind_tls"](scope, receive, send, secret="secret")
    return [sent[0]["status"], sent[1]["body"].decode()]
async def answers(cases):
    return [await ask(*case) for case in cases]
print(json.dumps(asyncio.run(answers(json.load(sys.stdin)))))
"""
PATTERNS = """
import json, runpy, sys
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
from ministack.core import iam_evaluator
print(json.dumps([[iam_evaluator.fnmatch_iam_cs(*case), iam_evaluator.fnmatch_iam(*case)] for case in json.load(sys.stdin)]))
"""
TRANSACTIONS = """
import json, runpy, sys
server = runpy.run_path(sys.argv[1])
seen = []
def enforce(*request, service_context, **more):
    seen.append(service_context.get("dynamodb:LeadingKeys", []))
server["enforce"].__globals__["_enforce"] = enforce
server["_patch_ministack"]("secret")
from ministack.core import iam_actions, iam_evaluator
def keys(body):
    seen.clear()
    checks = iam_actions.dynamodb_transaction_checks("dynamodb:TransactWriteItems", body.encode(), "eu-central-1", "1")
    for action, arn in checks:
        iam_evaluator.enforce("key", action, "dynamodb", "eu-central-1", resource_arn=arn, service_context={})
    return list(seen)
print(json.dumps([keys(body) for body in json.load(sys.stdin)]))
"""
KEY, OTHER = new_key(), new_key()
ISSUER = Issuer("http://127.0.0.1:1", "us", KEY)
FAR = 32_503_680_000
"""The year 3000. The interpreter of the cloud has the clock of the machine, whatever this one shows."""


def encoded(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def accepted(*tokens_and_keys: tuple[str, Mapping[str, Any]]) -> list[bool]:
    """Return the results of the check that MiniStack calls, from one process of its interpreter."""
    return results_of(CHECK, tokens_and_keys)


def results_of(program: str, cases: object) -> list[Any]:
    command = [
        str(CLOUD_PYTHON),
        "-I",
        "-c",
        program,
        str(PROJECT / "infra" / "asya_local" / "ministack" / "server.py"),
    ]
    result = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    results: list[Any] = json.loads(result.stdout)
    return results


@pytest.mark.rule("13.jwt")
@pytest.mark.slow
def test_only_tokens_of_the_issuer_with_rs256_and_an_expiry_are_accepted() -> None:
    token, key = ISSUER.token("alice", iat=0, exp=FAR), public_jwk(KEY)
    head, claims, signature = token.split(".")
    subject = {"sub": "alice", "exp": FAR}
    cases: dict[str, tuple[str, Mapping[str, Any]]] = {
        "good": (token, key),
        "wrong key": (ISSUER.token("alice", key=OTHER), key),
        "key of another issuer": (token, public_jwk(OTHER)),
        "changed claims": (".".join((head, encoded({"sub": "bob", "exp": FAR}), signature)), key),
        "cut signature": (".".join((head, claims, signature[:-4])), key),
        "made-up signature": (".".join((head, claims, "A" * len(signature))), key),
        "signature above the modulus": (".".join((head, claims, "_" * len(signature))), key),
        "empty signature": (".".join((head, claims, "")), key),
        "two parts": (".".join((head, claims)), key),
        "four parts": (f"{token}.more", key),
        "no objects": (".".join((encoded([]), encoded([]), signature)), key),
        "empty": ("", key),
        "algorithm none": (jwt.encode(subject, "", algorithm="none"), key),
        "algorithm HS256": (jwt.encode(subject, "secret" * 8, algorithm="HS256"), key),
        "algorithm RS512": (jwt.encode(subject, KEY, algorithm="RS512"), key),
        "no expiry": (jwt.encode({"sub": "alice"}, KEY, algorithm="RS256"), key),
        "empty key": (token, {}),
        "numbers in the key": (token, {"kty": "RSA", "n": 1, "e": 2}),
        "empty numbers": (token, {"kty": "RSA", "n": "", "e": ""}),
        "short key": (token, {"kty": "RSA", "n": "AQAB", "e": "AQAB"}),
        "no base64": (token, {"kty": "RSA", "n": "!", "e": "AQAB"}),
    }
    results = dict(zip(cases, accepted(*cases.values()), strict=True))
    assert results == {name: name == "good" for name in cases}


@pytest.mark.slow
def test_a_service_assumes_a_role_for_its_own_account_only() -> None:
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "emr-serverless.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"aws:SourceAccount": "111122223333"}},
    }
    document = {"Version": "2012-10-17", "Statement": [trust]}
    cases = {
        "a service of the account": ("111122223333", "arn:aws:iam::111122223333:root", document),
        "a service of another account": ("444455556666", "arn:aws:iam::444455556666:root", document),
        "a user": ("111122223333", "arn:aws:iam::111122223333:user/ann", document),
    }
    results = dict(zip(cases, results_of(TRUST, list(cases.values())), strict=True))
    assert results == {name: name == "a service of the account" for name in cases}


@pytest.mark.slow
def test_a_batch_of_messages_needs_the_action_of_a_single_one() -> None:
    single = ["SendMessage", "DeleteMessage", "ChangeMessageVisibility"]
    batches = [f"{action}Batch" for action in single]
    expected = [f"sqs:{action}" for action in single]
    assert results_of(ACTIONS, [*single, *batches, "ReceiveMessage"]) == [*expected, *expected, "sqs:ReceiveMessage"]


@pytest.mark.rule("13.states")
@pytest.mark.slow
def test_a_batch_of_reads_names_the_attributes_of_each_table() -> None:
    key = [{"pk": {"S": "t"}}]
    names = {"Keys": key, "ProjectionExpression": "#0, pk", "ExpressionAttributeNames": {"#0": "status"}}
    every = {"dynamodb:Select": "ALL_ATTRIBUTES"}
    cases: list[tuple[Any, dict[str, Any]]] = [
        ({"RequestItems": {"a": names}}, specific("pk", "status")),
        (
            {"RequestItems": {"a": names, "b": {"Keys": key, "AttributesToGet": ["owner"]}}},
            specific("owner", "pk", "status"),
        ),
        ({"RequestItems": {"a": {"Keys": key}}}, every),
        ({"RequestItems": {"a": names, "b": {"Keys": key}}}, every),
        ({"RequestItems": {"a": [{"PutRequest": {}}]}}, every),
        ({"RequestItems": []}, every),
        ({"TableName": "a", "Key": key[0], "ProjectionExpression": "owner"}, specific("owner")),
    ]
    contexts = results_of(CONDITIONS, [json.dumps(body) for body, _ in cases])
    for context in contexts:
        context.pop("dynamodb:LeadingKeys", None)
    assert contexts == [expected for _, expected in cases]


def specific(*attributes: str) -> dict[str, Any]:
    return {"dynamodb:Attributes": list(attributes), "dynamodb:Select": "SPECIFIC_ATTRIBUTES"}


@pytest.mark.slow
def test_conditions_see_the_keys_that_a_request_names() -> None:
    one, two = ({"pk": {"S": key}, "sk": {"S": "x"}} for key in ("ROLE#1", "OWNER#2"))
    write = {"RequestItems": {"t": [{"PutRequest": {"Item": one}}, {"DeleteRequest": {"Key": two}}]}}
    cases: list[tuple[object, list[str] | None]] = [
        ({"TableName": "t", "Key": one}, ["ROLE#1"]),
        ({"TableName": "t", "Item": two}, ["OWNER#2"]),
        ({"RequestItems": {"t": {"Keys": [one, two]}}}, ["OWNER#2", "ROLE#1"]),
        (write, ["OWNER#2", "ROLE#1"]),
        ({"TableName": "t", "KeyConditionExpression": "pk = :pk"}, None),
        (queried("pk = :own", own="ROLE#1"), ["ROLE#1"]),
        (queried("#1=:own AND begins_with(sk, :own)", {"#1": "pk"}, own="ROLE#1"), ["ROLE#1"]),
        # The key that counts is that of the table, wherever another one stands.
        (queried("sk = :own AND #1 = :other", {"#1": "pk"}, own="ROLE#1", other="OWNER#2"), ["OWNER#2"]),
        (queried("pk = :own AND pk = :other", own="ROLE#1", other="OWNER#2"), ["OWNER#2", "ROLE#1"]),
        ({"TableName": "t", "KeyConditions": {"pk": {"AttributeValueList": [{"S": "ROLE#1"}]}}}, ["ROLE#1"]),
        ({"TableName": "t", "FilterExpression": "pk = :own"}, None),
        ({"TransactItems": [{"Put": {"TableName": "t", "Item": one}}]}, None),
        ({"TableName": "t", "Key": 7}, None),
        ([], None),
    ]
    contexts = results_of(CONDITIONS, [json.dumps(body) for body, _ in cases])
    assert [context.get("dynamodb:LeadingKeys") for context in contexts] == [keys for _, keys in cases]


def queried(condition: str, names: Mapping[str, str] | None = None, **values: str) -> dict[str, Any]:
    """A query with this condition."""
    asked = {"TableName": "t", "KeyConditionExpression": condition, "ExpressionAttributeNames": names or {}}
    return {**asked, "ExpressionAttributeValues": {f":{name}": {"S": value} for name, value in values.items()}}


@pytest.mark.slow
def test_each_item_of_a_transaction_is_judged_by_its_own_key() -> None:
    """A role that may write `a#…` alone is refused a transaction with another item, in whichever place and form."""

    def item(member: str, key: str) -> dict[str, Any]:
        named = "Item" if member == "Put" else "Key"
        return {member: {"TableName": "t", named: {"pk": {"S": key}, "sk": {"S": "x"}}}}

    own, other = item("Put", "a#1"), item("Put", "b#1")
    cases: list[tuple[list[Any], list[list[str]]]] = [
        ([own, own], [["a#1"], ["a#1"]]),
        ([own, other], [["a#1"], ["b#1"]]),
        ([item(each, "b#1") for each in ("Update", "Delete", "ConditionCheck")], [["b#1"]] * 3),
        ([{**own, **item("Update", "b#1")}], [["a#1"], ["b#1"]]),
        ([{"Put": {"TableName": "t", "Item": 7}}], [[]]),
        ([7, {"Put": 7}, {}], []),
    ]
    answers = results_of(TRANSACTIONS, [json.dumps({"TransactItems": items}) for items, _ in cases])
    assert answers == [keys for _, keys in cases]


@pytest.mark.rule("10.job-reads")
@pytest.mark.slow
def test_who_reads_an_object_needs_the_key_of_its_bucket() -> None:
    """`aws/s3` lets every principal of the account use it through S3, but a session policy must name the action."""
    code, other = "arn:aws:s3:::cdk-hnb659fds-assets-1-eu-west-1/a.zip", "arn:aws:s3:::secrets/a"
    s3 = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    reads_code = {"kms:EncryptionContext:aws:s3:arn": "arn:aws:s3:::cdk-hnb659fds-assets-1-eu-west-1/*"}
    key = {
        "Effect": "Allow",
        "Action": "kms:Decrypt",
        "Resource": "arn:aws:kms:*:*:key/*",
        "Condition": {"StringLike": {**reads_code, "kms:ViaService": "s3.*.amazonaws.com"}},
    }
    elsewhere = {**key, "Condition": {"StringLike": {**reads_code, "kms:ViaService": "sqs.*.amazonaws.com"}}}
    named = {**key, "Resource": "arn:aws:kms:eu-west-1:*:key/own", "Condition": {}}
    read, write = "s3:GetObject", "s3:PutObject"
    cases: list[tuple[Any, Any, str, str, bool]] = [
        ([s3], None, read, code, True),
        ([s3, key], [s3], read, code, False),
        ([s3], [s3, key], read, code, True),
        ([s3], [s3, elsewhere], read, code, False),
        ([s3], [s3, key], write, code, False),
        ([s3], [s3], "s3:DeleteObject", code, True),
        ([s3], [s3], "s3:ListBucket", "arn:aws:s3:::cdk-hnb659fds-assets-1-eu-west-1", True),
        ([s3], [s3], read, "arn:aws:s3:::data/a", True),
        # A bucket with a key of its own: the role needs the key, too.
        ([s3], None, read, other, False),
        ([s3, named], None, read, other, True),
        ([s3, named], [s3], read, other, False),
        ([s3, named], [s3, named], read, other, True),
    ]
    answers = results_of(KEYS, [case[:-1] for case in cases])
    assert answers == [allowed for *_, allowed in cases]


@pytest.mark.slow
def test_a_call_of_rest_needs_the_action_of_its_method_and_path() -> None:
    """And one that nobody knows needs an action that no policy names."""
    function = "/2015-03-31/functions/a"
    cases = [
        (("lambda", "POST", f"{function}/invocations"), "lambda:InvokeFunction"),
        (("lambda", "POST", "/2014-11-13/functions/a/invoke-async"), "lambda:InvokeFunction"),
        (("lambda", "POST", "/2021-11-15/functions/a/response-streaming-invocations"), "lambda:InvokeFunction"),
        (("lambda", "PUT", "/2015-03-31/event-source-mappings/b"), "lambda:UpdateEventSourceMapping"),
        (("lambda", "DELETE", "/2015-03-31/event-source-mappings/b"), "lambda:DeleteEventSourceMapping"),
        (("lambda", "DELETE", "/2018-10-31/layers/a/versions/1"), "lambda:DeleteLayerVersion"),
        (("lambda", "GET", "/2016-08-19/account-settings"), "lambda:GetAccountSettings"),
        (("lambda", "GET", "/2019-09-30/functions/a/concurrency"), "lambda:GetFunctionConcurrency"),
        (("lambda", "PUT", "/2017-10-31/functions/a/concurrency"), "lambda:PutFunctionConcurrency"),
        (("lambda", "DELETE", "/2017-10-31/functions/a/concurrency"), "lambda:DeleteFunctionConcurrency"),
        (("lambda", "GET", function, {}, {"Action": ["ListTags"]}), "lambda:GetFunction"),
        (("lambda", "GET", function, {"x-amz-target": "a.ListTags"}, {}), "lambda:AmbiguousCall"),
        (("lambda", "POST", "/2099-01-01/functions/a/what-comes"), "lambda:UnknownCall"),
        (("s3", "PUT", "/data/key", {}, {"Action": ["GetObject"]}), "s3:PutObject"),
        (("s3", "PUT", "/data/key", {"x-amz-target": "a.GetObject"}, {}), "s3:AmbiguousCall"),
        (("monitoring", "POST", "/service/Granite/operation/GetMetricData"), "cloudwatch:GetMetricData"),
        (("events", "POST", "/"), "events:UnknownCall"),
        (("none", "POST", "/"), "none:UnknownCall"),
    ]
    assert results_of(REST, [call for call, _ in cases]) == [action for _, action in cases]


@pytest.mark.slow
def test_a_message_reaches_the_queue_that_iam_has_judged() -> None:
    """However the call names its queue: in the URL, the form, JSON, the path, or several of them."""
    wrong, right = results_of(READINGS, True)
    assert (wrong, right > 0) == (0, True)
    unguarded, _ = results_of(READINGS, False)
    assert unguarded > 0  # MiniStack alone judges one queue and serves another


@pytest.mark.slow
def test_a_search_of_a_log_group_needs_what_aws_asks_for() -> None:
    groups = "arn:aws:logs:eu-central-1:1:log-group"
    found = results_of(
        RESOURCES,
        [
            ("logs", "Logs_20140328.FilterLogEvents", '{"logGroupName": "/aws/lambda/a"}'),
            ("logs", "Logs_20140328.DescribeLogGroups", "{}"),
            ("kinesis", "Kinesis_20131202.PutRecord", '{"StreamName": "s"}'),
        ],
    )
    assert found == [f"{groups}:/aws/lambda/a:*", "*", "arn:aws:kinesis:eu-central-1:1:stream/s"]


def signed_headers(service: str, key: str, **more: str) -> dict[str, str]:
    """The headers of a signature of now, by the clock of the cloud, whose value is wrong."""
    scope = f"{key}/{{day}}/us-east-1/{service}/aws4_request"
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={'0' * 64}"
    )
    return {"host": "127.0.0.1:4566", "x-amz-date": "{now}", "authorization": authorization} | more


@pytest.mark.slow
def test_a_stranger_fills_no_memory() -> None:
    """399 MB, in chunks of one: how many are read, and the status."""
    host = {"host": "127.0.0.1:4566"}
    token = "5d1f0c3e-8f0b-4a1e-9d52-3f1b6c0a7e21"
    cases: list[tuple[str, str, dict[str, str]]] = [
        ("PUT", "/bucket/a", signed_headers("s3", "AKIDOFNOBODY")),
        ("POST", "/", signed_headers("sqs", "AKIDOFNOBODY")),
        ("PUT", "/bucket/a", signed_headers("s3", "AKIDEXAMPLE", **{"x-amz-content-sha256": "UNSIGNED-PAYLOAD"})),
        ("POST", "/", signed_headers("sqs", "AKIDEXAMPLE", **{"content-length": "418381824"})),
        ("POST", "/", signed_headers("sqs", "AKIDEXAMPLE")),
        ("POST", "/_aws/execute-api/0a1b/x", host),
        ("PUT", f"/_ministack/cfn-response/{token}", host),
        ("PUT", "/_ministack/cfn-response/../reset", host),
        ("POST", "/_ministack/reset", host),
    ]
    answers = results_of(BODIES, cases)
    assert [read for read, _ in answers] == [0, 0, 0, 0, 21, 11, 11, 0, 0]
    assert {status for _, status in answers} <= {403, 413}


OWN_PATHS = (
    *(
        ("GET", path)
        for path in ("/health", "/.well-known/jwks.json", "/pool/.well-known/openid-configuration", "/login")
    ),
    *(
        ("GET", path)
        for path in ("/oauth2/authorize", "/oauth2/userInfo", "/v2/", "/v2/_catalog", "/iceberg/v1/config")
    ),
    *(
        ("POST", path)
        for path in ("/health", "/oauth2/token", "/Execute", "/BeginTransaction", "/v20180820/accesspoint/a")
    ),
    *(("PUT", path) for path in ("/health", "/v20180820/tags/a", f"/_ministack/cfn-response/{'0' * 32}")),
)
"""What MiniStack serves at any host by the path alone."""


@pytest.mark.slow
def test_the_host_of_an_api_has_the_paths_of_the_api_alone() -> None:
    """A stranger learns nothing of MiniStack there, such as its services by `GET /health`."""
    hosts = {"0a1b2c3d.execute-api.localhost:4566": "", "127.0.0.1:4566": "/_aws/execute-api/0a1b2c3d/$default"}
    cases = [(method, host, prefix + path) for host, prefix in hosts.items() for method, path in OWN_PATHS]
    plain = [(method, host, f"{prefix}/anything") for host, prefix in hosts.items() for method, _ in OWN_PATHS]
    assert results_of(AT_AN_API, cases) == results_of(AT_AN_API, plain)


@pytest.mark.slow
@pytest.mark.rule("13.doors.paths")
def test_a_pattern_of_a_policy_matches_any_text() -> None:
    """As `asya_infra.permissions.evaluation` has it: a line feed is a character, and ends no text."""
    characters = ["\n", "\r", "\u2028", "a", "*", "?", ".", "", "aa", "a\n"]
    patterns = ("x*", "x?", "xa*", "x*a", "xa")
    cases = [(f"x{one}{two}", pattern) for one in characters for two in characters for pattern in patterns]
    expected = [
        is_allowed([{"Effect": "Allow", "Action": "a:b", "Resource": pattern}], Request("a:b", text))
        for text, pattern in cases
    ]
    assert [exact for exact, _ in results_of(PATTERNS, cases)] == expected
    assert 0 < sum(expected) < len(expected)
    cases = [("ab:C\n", "AB:*"), ("AB:c", "ab:C"), ("ab:c\n", "ab:c")]
    assert results_of(PATTERNS, cases) == [[False, True], [False, True], [False, False]]
