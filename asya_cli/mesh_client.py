"""What an operator does with a mesh: send to it, ask how a task is, fetch what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import msgspec
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError

from asya.aws.claim_check import SENDERS_PREFIX, ClaimCheck
from asya.aws.gateway_client import address_of
from asya.protocol import names
from asya.protocol.codec import encode
from asya.protocol.keys import CANCELED_PREFIX, PAUSED_PREFIX, SUMP_PREFIX, safe_segment
from asya.protocol.task_view import TaskView
from asya.routing.delivery import Delivery
from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.protocol.envelope import Envelope
    from asya_cli.connection import Connection

SECONDS = 30.0
"""How long the status endpoint may take to answer: an HTTP API never takes longer."""

USUAL_PREFIXES = ("succeeded/", "failed/", CANCELED_PREFIX, PAUSED_PREFIX, SUMP_PREFIX)
"""Where an envelope's object is looked for when no record tells (`protocol §11`, layout `by-id`)."""

_NOT_THERE = frozenset({"404", "NoSuchKey", "NotFound"})


@dataclass(frozen=True)
class StoredObject:
    """An object in S3, byte for byte."""

    uri: str
    body: bytes


@dataclass(frozen=True)
class MeshClient:
    """One mesh, asked with an operator's credentials. Nothing is tried twice but by the AWS SDK."""

    connection: Connection
    _pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(retries=False), repr=False)

    def send(self, envelope: Envelope) -> str:
        """Send an envelope to the actor its route names; returns the id of the SQS message.

        A payload that is too large for a message goes through the mesh's bucket (`protocol §4`).

        Raises
        ------
        CommandError
            The mesh has no such actor, or AWS did not take it.
        """
        actor = envelope.route.curr
        sqs = self.connection.sqs()
        try:
            url = sqs.get_queue_url(QueueName=names.queue_name(self.connection.namespace, actor))["QueueUrl"]
            delivery = self._claim_check(url).offload(Delivery(actor, encode(envelope), "next"))
            if delivery.actor != actor:
                raise CommandError(f"the envelope is too large for a message even without its payload ({envelope.id})")
            return sqs.send_message(QueueUrl=url, MessageBody=delivery.body.decode())["MessageId"]
        except ClientError as error:
            if error.response["Error"]["Code"].endswith(("NonExistentQueue", "QueueDoesNotExist")):
                raise CommandError(
                    f"the mesh {self.connection.namespace!r} has no actor {actor!r}", "The mesh file lists the actors."
                ) from None
            raise CommandError(f"the message for {actor} was not sent: {error}") from error
        except BotoCoreError as error:
            raise CommandError(f"the message for {actor} was not sent: {error}") from error

    def _claim_check(self, queue_url: str) -> ClaimCheck:
        """Where payloads go that are too large for a message: the mesh's own bucket, which is named after its account."""
        account = queue_url.split("/")[-2]
        bucket = names.bucket_name(self.connection.namespace, account, self.connection.region)
        return ClaimCheck(self.connection.s3(), bucket, prefix=SENDERS_PREFIX)

    def task(self, envelope_id: str) -> TaskView | None:
        """The task's record (`protocol §13`); None if there is none, or it is somebody else's.

        Raises
        ------
        CommandError
            The status endpoint did not answer, or refused.
        """
        path = f"/api/v1/mesh/{quote(envelope_id, safe='')}"
        status, body = self._get(path)
        if status == 404:
            return None
        if status != 200:
            advice = "Your credentials need execute-api:Invoke on the mesh's API." if status == 403 else ""
            raise CommandError(
                f"the status endpoint answered {status}: {body[:300].decode('utf-8', 'replace')}", advice
            )
        try:
            return msgspec.json.decode(body, type=TaskView)
        except msgspec.MsgspecError as error:
            raise CommandError(f"the status endpoint's answer is not understood: {error}") from error

    def stored(self, envelope_id: str, result_uri: str | None = None) -> StoredObject | None:
        """What the mesh keeps of an envelope that ended: the object its record names, else where it would usually lie.

        Raises
        ------
        CommandError
            S3 did not answer, or refused.
        """
        for uri in [result_uri] if result_uri else self._usual_uris(envelope_id):
            body = self.fetch(uri)
            if body is not None:
                return StoredObject(uri, body)
        return None

    def fetch(self, uri: str) -> bytes | None:
        """An object's bytes; None if there is none.

        Raises
        ------
        CommandError
            S3 did not answer, or refused.
        """
        parts = urlsplit(uri)
        try:
            return self.connection.s3().get_object(Bucket=parts.netloc, Key=parts.path.lstrip("/"))["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                return None
            raise CommandError(f"{uri} could not be read: {error}") from error
        except BotoCoreError as error:
            raise CommandError(f"S3 was not reached: {error}") from error

    def upload(self, reference: str, body: bytes) -> None:
        """Put a file into the mesh's data, where payloads can refer to it.

        Raises
        ------
        CommandError
            S3 did not answer, or refused.
        """
        place = self.connection.data
        try:
            self.connection.s3().put_object(Bucket=place.bucket, Key=place.prefix + reference, Body=body)
        except (ClientError, BotoCoreError) as error:
            raise CommandError(f"{place.uri}{reference} could not be written: {error}") from error

    def _usual_uris(self, envelope_id: str) -> Iterator[str]:
        for prefix in USUAL_PREFIXES:
            yield f"{self.connection.results.uri}{prefix}{safe_segment(envelope_id)}.json"

    def _get(self, path: str) -> tuple[int, bytes]:
        url = self.connection.gateway_url + path
        credentials = self.connection.session.get_credentials()
        if credentials is None:
            raise CommandError("there are no AWS credentials", "Configure them as for the AWS command line.")
        request = AWSRequest("GET", url, headers={"host": urlsplit(url).netloc})
        SigV4Auth(credentials, "execute-api", self.connection.region).add_auth(request)
        try:
            answer = self._pool.request(
                "GET", address_of(url), headers=dict(request.headers.items()), timeout=SECONDS, redirect=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise CommandError(f"the status endpoint did not answer ({url}): {error}") from error
        return answer.status, answer.data
