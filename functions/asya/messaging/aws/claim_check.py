"""Messages too large for SQS: the payload waits in S3, the envelope carries a reference (`protocol §4`).

On the wire such an envelope has `payload` null and the header `x-asya-payload-ref`; neither is ever seen past this module.
"""

import hashlib
from typing import TYPE_CHECKING, Annotated

import msgspec
from botocore.exceptions import ClientError
from msgspec import Raw
from msgspec.structs import replace

from asya.messaging import oversize
from asya.messaging.delivery import Delivery
from asya.messaging.sqs_limits import MESSAGE_BYTES, MESSAGE_MARGIN, is_sendable
from asya.protocol import headers, names
from asya.protocol.codec import ParseError, decode, encode
from asya.protocol.envelope import NULL, Envelope

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PREFIX = "payloads/"
INBOX_PREFIX = "inbox/"
_MARK = headers.PAYLOAD_REF.encode()


class PayloadReference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a payload waits. `size` in bytes, `sha256` in hexadecimal digits."""

    key: str
    size: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str


class EnvelopeTooLargeError(ValueError):
    """An envelope that is too large even without its payload: its headers or route are."""


class ClaimCheck:
    """Puts payloads aside and brings them back, in the mesh's own bucket only.

    Args:
        limit: bytes that a message may have.
        prefix: where payloads are put; a sender who is no part of the mesh may only put them under `INBOX_PREFIX`.
    """

    def __init__(
        self, s3: "S3Client", bucket: str, limit: int = MESSAGE_BYTES - MESSAGE_MARGIN, prefix: str = PREFIX
    ) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._limit = limit
        self._prefix = prefix

    def offload(self, delivery: Delivery) -> Delivery:
        """The delivery as it can be sent: unchanged if SQS takes it as it is.

        The key is made from the content, so that doing it again writes the same object. An envelope that is too large for other
        reasons than its payload is sent to x-sump instead.

        Raises:
            EnvelopeTooLargeError: if not even x-sump can be told of it.
            botocore.exceptions.ClientError: if S3 does not take it.
        """
        if len(delivery.body) <= self._limit and is_sendable(delivery.body):
            return delivery
        envelope = decode(delivery.body)
        payload = bytes(envelope.payload)
        digest = hashlib.sha256(payload).hexdigest()
        reference = PayloadReference(f"{self._prefix}{digest[:2]}/{digest}.json", len(payload), digest)
        light = self._light(delivery, envelope, reference)
        self._s3.put_object(Bucket=self._bucket, Key=reference.key, Body=payload, ContentType="application/json")
        return light

    def _light(self, delivery: Delivery, envelope: Envelope, reference: PayloadReference) -> Delivery:
        """The delivery with a reference in the payload's place; to x-sump if it is too large all the same."""
        body = _referring(envelope, reference)
        if len(body) <= self._limit:
            return replace(delivery, body=body)
        problem = f"the envelope has {len(body)} bytes without its payload; {self._limit} at most can be sent"
        for slim in oversize.reduced_for_sump(envelope, problem):
            body = _referring(slim, reference)
            if len(body) <= self._limit:
                return Delivery(names.SUMP, body, "sump")
        raise EnvelopeTooLargeError(f"envelope {envelope.id}: {problem}")

    def redeem(self, body: bytes) -> bytes:
        """The message as its sender meant it: unchanged if it carries no reference.

        Raises:
            ParseError: a reference to anywhere else, a missing object, a wrong size or hash.
            botocore.exceptions.ClientError: other trouble with S3; the message is not to be acked.
        """
        if _MARK not in body:
            return body
        envelope = decode(body)
        raw = envelope.headers.get(headers.PAYLOAD_REF)
        if raw is None:
            return body
        reference = self._reference(raw, envelope.id)
        payload = self._fetch(reference, envelope.id)
        changed = {name: value for name, value in envelope.headers.items() if name != headers.PAYLOAD_REF}
        return encode(replace(envelope, payload=Raw(payload), headers=changed))

    def _reference(self, raw: Raw, envelope_id: str) -> PayloadReference:
        try:
            reference = msgspec.json.decode(raw, type=PayloadReference)
        except msgspec.MsgspecError as error:
            raise ParseError(f"headers.{headers.PAYLOAD_REF}: {error}", envelope_id) from None
        if not reference.key.startswith((PREFIX, INBOX_PREFIX)) or ".." in reference.key.split("/"):
            raise ParseError(
                f"headers.{headers.PAYLOAD_REF}: {reference.key!r} is outside of {PREFIX} and {INBOX_PREFIX}",
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
        # One byte more than announced tells an object that is longer, without reading all of it into memory.
        payload = answer["Body"].read(reference.size + 1)
        if len(payload) != reference.size or hashlib.sha256(payload).hexdigest() != reference.sha256:
            raise ParseError(f"payload object {reference.key!r} is not the one referred to (size or hash)", envelope_id)
        try:
            payload.decode("utf-8")
            msgspec.json.decode(payload, type=Raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ParseError(f"payload object {reference.key!r} is no JSON: {error}", envelope_id) from None
        return payload


def _referring(envelope: Envelope, reference: PayloadReference) -> bytes:
    slim = replace(envelope, payload=NULL)
    return encode(slim.with_headers({headers.PAYLOAD_REF: msgspec.to_builtins(reference)}))
