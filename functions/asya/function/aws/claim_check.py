"""The claim check in S3: stores payloads that are too large for SQS, and restores them (`protocol §4`)."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from msgspec import Raw
from msgspec.structs import replace

from asya.function.aws.bounded_reads import is_missing, is_unreadable, largest_payload
from asya.function.claim_check import (
    PayloadReference,
    check_payload,
    needs_claim_check,
    read_reference,
    reference_to,
    with_reference,
)
from asya.function.hop import Delivery
from asya.function.sqs import MESSAGE_BYTES, MESSAGE_MARGIN
from asya.protocol import headers
from asya.protocol.codec import ParseError, decode
from asya.protocol.envelope import Envelope
from asya.protocol.keys import PAYLOADS_PREFIX

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class ClaimCheck:
    """Stores payloads in the mesh's bucket and restores them.

    Args:
        limit: the maximum bytes of a message.
        prefix: the key prefix of stored payloads; the gateway and the command may write under `INBOX_PREFIX` only.
        reader: the actor that restores payloads; None restores those for all actors.
        is_bounded: whether a payload that the memory has no room for makes its envelope unreadable. A function without code of
            users works for everybody, and everybody may store a payload for it.
    """

    def __init__(
        self,
        s3: "S3Client",
        bucket: str,
        limit: int = MESSAGE_BYTES - MESSAGE_MARGIN,
        prefix: str = PAYLOADS_PREFIX,
        *,
        reader: str | None = None,
        is_bounded: bool = True,
    ) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._limit = limit
        self._prefix = prefix
        self._reader = reader
        self._is_bounded = is_bounded

    def offload(self, delivery: Delivery) -> Delivery:
        """Store the payload of a delivery if SQS would refuse the message; otherwise return the delivery unchanged.

        The key derives from the content, so a second call changes nothing. An envelope that is too large even without its
        payload goes to x-sump instead.

        Raises:
            EnvelopeTooLargeError: the envelope is too large even for x-sump.
            botocore.exceptions.ClientError: S3 refused the payload.
        """
        if not needs_claim_check(delivery.body, self._limit):
            return delivery
        envelope = decode(delivery.body)
        payload = bytes(envelope.payload)
        reference = reference_to(payload, self._prefix, delivery.actor)
        referring = with_reference(delivery, envelope, reference, self._limit)
        self._s3.put_object(Bucket=self._bucket, Key=reference.key, Body=payload, ContentType="application/json")
        return referring

    def redeem(self, envelope: Envelope) -> Envelope:
        """Restore the payload of an envelope; an envelope without a reference stays unchanged.

        Raises:
            ParseError: the reference or the object is invalid: a wrong prefix, size or hash, or an object that is missing or
                that nobody can read.
            botocore.exceptions.ClientError: another error of S3; the caller keeps the message on its queue.
        """
        raw = envelope.headers.get(headers.PAYLOAD_REF)
        if raw is None:
            return envelope
        reference = read_reference(raw, envelope.id, self._reader)
        payload = self._fetch(reference, envelope.id)
        others = {name: value for name, value in envelope.headers.items() if name != headers.PAYLOAD_REF}
        return replace(envelope, payload=Raw(payload), headers=others)

    def _fetch(self, reference: PayloadReference, envelope_id: str) -> bytes:
        limit = largest_payload() if self._is_bounded else None
        if limit is not None and reference.size > limit:
            raise ParseError(
                f"payload object {reference.key!r} has {reference.size:,} bytes, and this function has memory for {limit:,}",
                envelope_id,
            )
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=reference.key)
        except ClientError as error:
            if is_missing(error):
                raise ParseError(f"payload object {reference.key!r} does not exist", envelope_id) from error
            if is_unreadable(error):
                problem = "is archived, or encrypted with a key that S3 does not keep"
                raise ParseError(f"payload object {reference.key!r} {problem}", envelope_id) from error
            raise
        # One byte more than announced detects a longer object without reading all of it into memory.
        payload = answer["Body"].read(reference.size + 1)
        check_payload(payload, reference, envelope_id)
        return payload
