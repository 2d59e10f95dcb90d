"""The claim check: a payload that is too large for SQS is stored in S3 (`protocol §4`).

The message then has `payload` null and a reference in the header `x-asya-payload-ref`. No other module sees these.
"""

import hashlib
from typing import TYPE_CHECKING, Annotated

import msgspec
from botocore.exceptions import ClientError
from msgspec import Raw
from msgspec.structs import replace

from asya.messaging import reduced_envelope
from asya.messaging.delivery import Delivery
from asya.messaging.sqs_limits import MESSAGE_BYTES, MESSAGE_MARGIN, is_sendable
from asya.protocol import headers, names
from asya.protocol.codec import ParseError, decode, encode
from asya.protocol.envelope import NULL, Envelope

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PAYLOADS_PREFIX = "payloads/"
INBOX_PREFIX = "inbox/"
_HEADER_NAME = headers.PAYLOAD_REF.encode()


class PayloadReference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reference to a payload in S3. `size` is in bytes, `sha256` in hexadecimal digits."""

    key: str
    size: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str


class EnvelopeTooLargeError(ValueError):
    """An envelope is too large even without its payload, headers and route."""


class ClaimCheck:
    """Stores payloads in the mesh's bucket and restores them.

    Args:
        limit: the maximum bytes of a message.
        prefix: the key prefix of stored payloads; the gateway and the command may write under `INBOX_PREFIX` only.
    """

    def __init__(
        self, s3: "S3Client", bucket: str, limit: int = MESSAGE_BYTES - MESSAGE_MARGIN, prefix: str = PAYLOADS_PREFIX
    ) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._limit = limit
        self._prefix = prefix

    def offload(self, delivery: Delivery) -> Delivery:
        """Store the payload of a delivery if SQS would refuse the message; otherwise return the delivery unchanged.

        The key derives from the content, so this operation is idempotent. An envelope that is too large even without its
        payload goes to x-sump instead.

        Raises:
            EnvelopeTooLargeError: the envelope is too large even for x-sump.
            botocore.exceptions.ClientError: S3 refused the payload.
        """
        if len(delivery.body) <= self._limit and is_sendable(delivery.body):
            return delivery
        envelope = decode(delivery.body)
        payload = bytes(envelope.payload)
        digest = hashlib.sha256(payload).hexdigest()
        reference = PayloadReference(f"{self._prefix}{digest[:2]}/{digest}.json", len(payload), digest)
        referring = self._with_reference(delivery, envelope, reference)
        self._s3.put_object(Bucket=self._bucket, Key=reference.key, Body=payload, ContentType="application/json")
        return referring

    def _with_reference(self, delivery: Delivery, envelope: Envelope, reference: PayloadReference) -> Delivery:
        """The delivery with a reference instead of the payload; it goes to x-sump if it is still too large."""
        body = _encode_with_reference(envelope, reference)
        if len(body) <= self._limit:
            return replace(delivery, body=body)
        problem = f"the envelope has {len(body)} bytes without its payload; {self._limit} at most can be sent"
        for reduced in reduced_envelope.reduced_for_sump(envelope, problem):
            body = _encode_with_reference(reduced, reference)
            if len(body) <= self._limit:
                return Delivery(names.SUMP, body, "sump")
        raise EnvelopeTooLargeError(f"envelope {envelope.id}: {problem}")

    def redeem(self, body: bytes) -> bytes:
        """Restore the payload of a message; a message without a reference stays unchanged.

        Raises:
            ParseError: the reference or the object is invalid: a wrong prefix, size or hash, or a missing object.
            botocore.exceptions.ClientError: another error of S3; the caller keeps the message on its queue.
        """
        if _HEADER_NAME not in body:
            return body
        envelope = decode(body)
        raw = envelope.headers.get(headers.PAYLOAD_REF)
        if raw is None:
            return body
        reference = self._reference(raw, envelope.id)
        payload = self._fetch(reference, envelope.id)
        others = {name: value for name, value in envelope.headers.items() if name != headers.PAYLOAD_REF}
        return encode(replace(envelope, payload=Raw(payload), headers=others))

    def _reference(self, raw: Raw, envelope_id: str) -> PayloadReference:
        try:
            reference = msgspec.json.decode(raw, type=PayloadReference)
        except msgspec.MsgspecError as error:
            raise ParseError(f"headers.{headers.PAYLOAD_REF}: {error}", envelope_id) from None
        if not reference.key.startswith((PAYLOADS_PREFIX, INBOX_PREFIX)) or ".." in reference.key.split("/"):
            raise ParseError(
                f"headers.{headers.PAYLOAD_REF}: {reference.key!r} is outside of {PAYLOADS_PREFIX} and {INBOX_PREFIX}",
                envelope_id,
            )
        return reference

    def _fetch(self, reference: PayloadReference, envelope_id: str) -> bytes:
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=reference.key)
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchKey", "404"):
                raise ParseError(f"payload object {reference.key!r} does not exist", envelope_id) from error
            raise
        # One byte more than announced detects a longer object without reading all of it into memory.
        payload = answer["Body"].read(reference.size + 1)
        if len(payload) != reference.size or hashlib.sha256(payload).hexdigest() != reference.sha256:
            raise ParseError(
                f"payload object {reference.key!r} does not match the size or hash of its reference", envelope_id
            )
        try:
            payload.decode("utf-8")
            msgspec.json.decode(payload, type=Raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ParseError(f"payload object {reference.key!r} is not JSON: {error}", envelope_id) from None
        return payload


def _encode_with_reference(envelope: Envelope, reference: PayloadReference) -> bytes:
    referring = replace(envelope, payload=NULL)
    return encode(referring.with_headers({headers.PAYLOAD_REF: msgspec.to_builtins(reference)}))
