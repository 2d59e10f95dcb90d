"""Handlers for the tests of the gateway."""

import os
import time
from collections.abc import Iterator
from typing import Any

import boto3
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError

from asya import data
from asya.tasks.reporting.aws.gateway_client import address_of

Payload = dict[str, Any]


def echo(payload: Any) -> Any:
    """Returns the payload."""
    return payload


def talk(payload: Payload) -> Iterator[Any]:
    """Publishes partials, then sleeps."""
    for number in range(payload.get("messages", 20)):
        yield "FLY", {"number": number, "said_at": time.time()}
        time.sleep(payload.get("every", 0))
    time.sleep(payload.get("seconds", 3))
    yield payload


def slow(payload: Payload) -> Payload:
    """Sleeps for `seconds`, or until the object `until` exists in the data of the mesh."""
    time.sleep(payload.get("seconds", 0 if "until" in payload else 3))
    while "until" in payload and not is_there(payload["until"]):
        time.sleep(0.1)
    return payload


def is_there(reference: str) -> bool:
    """Returns whether an object exists."""
    try:
        return data.size(reference) > 0
    except FileNotFoundError:
        return False


def split(payload: Payload) -> Iterator[Payload]:
    """Fans out into `parts` frames."""
    for number in range(payload["parts"]):
        yield {"seconds": 0, **payload, "part": number}


def probe(payload: Payload) -> Payload:
    """Makes the calls of the payload with the credentials of its role; returns their statuses."""
    credentials = boto3.Session().get_credentials()
    results = []
    for method, path in payload["calls"]:
        url = os.environ["ASYA_GATEWAY_URL"] + path
        body = b"[]" if method == "POST" else b""
        host = url.split("/")[2]
        request = AWSRequest(method, url, data=body, headers={"host": host, "content-type": "application/json"})
        SigV4Auth(credentials, "execute-api", os.environ["AWS_REGION"]).add_auth(request)
        headers = dict(request.headers.items())
        response = urllib3.PoolManager().request(method, address_of(url), body=body, headers=headers, redirect=False)
        results.append([method, path, response.status])
    return {"results": results}


def read_records(payload: Payload) -> Payload:
    """Reads the records of the payload with the credentials of its role; returns what each read gave."""
    client = boto3.client("dynamodb")
    results = []
    for attributes in payload["reads"]:
        names = {f"#{number}": name for number, name in enumerate(attributes)}
        projection = {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names} if names else {}
        keys = [{"pk": {"S": payload["task"]}, "sk": {"S": payload["kind"]}}]
        try:
            answer = client.batch_get_item(RequestItems={payload["table"]: {"Keys": keys, **projection}})
            results.append(sorted(answer["Responses"][payload["table"]][0]))
        except ClientError as error:
            results.append(error.response["Error"]["Code"])
    return {"results": results}


def reach(payload: Payload) -> Payload:
    """Makes the calls to S3 of the payload with the credentials of its role; returns `done` or an error for each."""
    client: Any = boto3.client("s3")
    results = []
    for action, name in payload["calls"]:
        place = {"Prefix": name} if action == "list_objects_v2" else {"Key": name}
        body = {"Body": b"{}"} if action == "put_object" else {}
        try:
            getattr(client, action)(Bucket=payload["bucket"], **place, **body)
            results.append("done")
        except ClientError as error:
            results.append(error.response["Error"]["Code"])
    return {"results": results}


def send(payload: Payload) -> Payload:
    """Sends the messages of the payload with the credentials of its role; returns the message id or an error of each."""
    client = boto3.client("sqs")
    results = []
    for queue, body in payload["messages"]:
        try:
            url = f"{os.environ['ASYA_QUEUE_URL_PREFIX'].rstrip('/')}/{queue}"
            results.append(client.send_message(QueueUrl=url, MessageBody=body)["MessageId"])
        except ClientError as error:
            results.append(error.response["Error"]["Code"])
    return {"results": results}


def attempt(payload: Payload) -> Payload:
    """Makes the calls of the payload with the credentials of its role; returns `done` or the code of an error for each."""
    clients: dict[str, Any] = {}
    answers = []
    for service, call, arguments in payload["calls"]:
        if service not in clients:
            clients[service] = boto3.client(service)
        try:
            getattr(clients[service], call)(**arguments)
            answers.append("done")
        except ClientError as error:
            answers.append(error.response["Error"]["Code"])
    return {"answers": answers}
