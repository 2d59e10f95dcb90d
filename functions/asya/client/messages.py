"""Sends envelopes to the queues of a mesh, with errors for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.client.errors import MeshError, NotFoundError, OversizedEnvelopeError, UnreachableError
from asya.function.aws.claim_check import ClaimCheck
from asya.function.aws.missing_queues import is_missing_queue
from asya.function.claim_check import EnvelopeTooLargeError
from asya.function.delivery import Delivery
from asya.protocol import names
from asya.protocol.codec import encode
from asya.protocol.keys import INBOX_PREFIX

if TYPE_CHECKING:
    from asya.client.connection import Connection
    from asya.protocol.envelope import Envelope


def send_envelope(connection: Connection, envelope: Envelope) -> str:
    """Send an envelope to the current actor of its route and return the id of the SQS message.

    A payload that is too large for a message becomes a claim check (`protocol §4`).

    Raises:
        OversizedEnvelopeError: The envelope is too large even without its payload.
        MeshError: The mesh has no such actor, or AWS fails or denies access.
    """
    actor = envelope.route.curr
    sqs = connection.sqs()
    try:
        url = sqs.get_queue_url(QueueName=names.queue_name(connection.namespace, actor))["QueueUrl"]
        body = _message_body(envelope, _claim_check(connection, url))
        return sqs.send_message(QueueUrl=url, MessageBody=body.decode())["MessageId"]
    except ClientError as error:
        if is_missing_queue(error):
            raise NotFoundError(
                f"the mesh {connection.namespace!r} has no actor {actor!r}",
                "Check the name in the mesh file, and the namespace.",
            ) from None
        raise MeshError(f"cannot send the envelope to {actor}: {error}") from error
    except BotoCoreError as error:
        raise UnreachableError(f"cannot send the envelope to {actor}: {error}") from error


def _message_body(envelope: Envelope, claim_check: ClaimCheck) -> bytes:
    """Encode an envelope as a message, with a claim check for a large payload."""
    problem = f"envelope {envelope.id!r} is too large for a message even without its payload; shorten its headers"
    try:
        delivery = claim_check.offload(Delivery(envelope.route.curr, encode(envelope), "next"))
    except EnvelopeTooLargeError:
        raise OversizedEnvelopeError(problem) from None
    if delivery.actor != envelope.route.curr:
        raise OversizedEnvelopeError(problem)
    return delivery.body


def _claim_check(connection: Connection, queue_url: str) -> ClaimCheck:
    """Create the claim check with the mesh's own bucket. Its name contains the account id of the queue's URL."""
    account = queue_url.split("/")[-2]
    bucket = names.bucket_name(connection.namespace, account, connection.region)
    return ClaimCheck(connection.s3(), bucket, prefix=INBOX_PREFIX)
