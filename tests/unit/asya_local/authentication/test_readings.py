"""A call that IAM and a service could read differently is told from those that SDKs make."""

import json
from urllib.parse import parse_qs, urlencode

import pytest

from asya_local.authentication.readings import has_one_reading

QUEUE = "http://127.0.0.1:4566/000000000000/asya-shop-own"
OTHER = "http://127.0.0.1:4566/000000000000/asya-shop-payout"
PATH = "/000000000000/asya-shop-own"
SEND = {"Action": "SendMessage", "QueueUrl": QUEUE}
FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
TO_SQS = {"x-amz-target": "AmazonSQS.SendMessage", "content-type": "application/x-amz-json-1.0"}
TO_DYNAMODB = {"x-amz-target": "DynamoDB_20120810.PutItem"}
SIGNED = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=b"


def reads_once(
    service: str, headers: dict[str, str], body: str = "", *, url: str = "", path: str = "/", merged: bool = True
) -> bool:
    """As MiniStack passes a call: the parameters of the URL lie over those of a form."""
    form = parse_qs(body, keep_blank_values=True) if merged and headers == FORM else {}
    return has_one_reading(service, path, headers, body.encode(), form | parse_qs(url, keep_blank_values=True))


def as_json(queue: object) -> str:
    return json.dumps({"QueueUrl": queue, "MessageBody": "a?b=http://x/1/y"})


@pytest.mark.parametrize(
    ("service", "headers", "body", "url", "path"),
    [
        ("sqs", TO_SQS, as_json(QUEUE), "", "/"),
        ("sqs", TO_SQS, as_json(QUEUE), "", PATH),
        ("sqs", TO_SQS, as_json("http://127.0.0.1:58655/0/asya-tiny-echo"), "", "/"),
        ("sqs", TO_SQS, "{}", "", "/"),
        ("sqs", FORM, urlencode({**SEND, "MessageBody": "a&b ü"}), "", "/"),
        ("sqs", FORM, urlencode({"Action": "SendMessage", "MessageBody": "a"}), "", PATH),
        ("sqs", FORM, urlencode(SEND), SIGNED, "/"),
        ("sqs", {}, "", urlencode(SEND), "/"),
        ("sts", {}, "", f"Action=GetCallerIdentity&{SIGNED}", "/"),
        ("dynamodb", TO_DYNAMODB, '{"TableName": "a&Action=b"}', "", "/"),
        ("monitoring", {"content-type": "application/cbor"}, "x", "", "/service/Granite/operation/GetMetricData"),
        ("s3", FORM, "Action=a&Action=b", "partNumber=1", "/data/key"),
        ("lambda", {}, "{}", "Qualifier=1", "/2015-03-31/functions/a/invocations"),
    ],
)
def test_what_sdks_send_has_one_reading(service: str, headers: dict[str, str], body: str, url: str, path: str) -> None:
    assert reads_once(service, headers, body, url=url, path=path)


@pytest.mark.parametrize(
    "queue",
    [
        *(f"{OTHER}{more}" for more in ("?", f"?/{QUEUE}", f"#{QUEUE}", "/", "/asya-shop-own", "%2f", "\n", " ", "\t")),
        "asya-shop-own", "http://asya-shop-own", f"http://x{PATH}/..{PATH}", "", ["a"], 1,
    ],
)  # fmt: skip
def test_the_url_of_a_queue_has_an_account_and_a_name_and_nothing_more(queue: object) -> None:
    assert not reads_once("sqs", TO_SQS, as_json(queue))
    assert not reads_once("sqs", FORM, urlencode({"Action": "SendMessage", "QueueUrl": queue}))


@pytest.mark.parametrize(
    ("service", "headers", "body", "url", "path"),
    [
        ("sqs", FORM, urlencode(SEND | {"QueueUrl": OTHER}), urlencode(SEND), "/"),
        ("sqs", FORM, urlencode({"QueueUrl": OTHER}), urlencode(SEND), "/"),
        ("sqs", FORM, urlencode({"Action": "SendMessage", "QueueUrl": OTHER}), urlencode({"QueueUrl": QUEUE}), "/"),
        ("sqs", FORM, f"{urlencode(SEND)}&{urlencode({'QueueUrl': OTHER})}", "", "/"),
        ("sqs", FORM, "Action=GetQueueUrl&Action=SendMessage", "", "/"),
        ("sqs", {"content-type": "text/plain"}, urlencode({"QueueUrl": OTHER}), urlencode(SEND), "/"),
        ("sqs", FORM, json.dumps({"QueueUrl": QUEUE, "a": f"&{urlencode(SEND | {'QueueUrl': OTHER})}"}), "", "/"),
        ("sqs", FORM | TO_SQS, as_json(QUEUE), "", "/000000000000/asya-shop-payout"),
        ("sqs", FORM | TO_SQS | FORM, as_json(QUEUE), "", "/"),
        ("sqs", TO_SQS, as_json(OTHER), urlencode({"QueueUrl": QUEUE}), "/"),
        ("sqs", TO_SQS, "{}", "", f"{PATH}/000000000000/asya-shop-payout"),
        ("dynamodb", TO_DYNAMODB, "{}", "Action=GetItem", "/"),
        ("dynamodb", FORM | TO_DYNAMODB | FORM, '{"a": "&Action=GetItem&"}', "", "/"),
        ("monitoring", TO_DYNAMODB, "{}", "", "/service/Granite/operation/GetMetricData"),
        ("s3", TO_DYNAMODB, "{}", "Action=GetObject", "/data/key"),
        ("sns", FORM, "Action=Publish&TopicArn=a", "TopicArn=b", "/"),
    ],
)  # fmt: skip
def test_what_names_something_twice_has_not(
    service: str, headers: dict[str, str], body: str, url: str, path: str
) -> None:
    assert not reads_once(service, headers, body, url=url, path=path)
