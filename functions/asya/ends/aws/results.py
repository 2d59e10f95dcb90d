"""Writes ended envelopes to the results bucket as indented JSON (`protocol §11`)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from asya.ends.result_metadata import result_metadata
from asya.function.aws.conditional_writes import is_missing, is_precondition_failure
from asya.protocol.codec import encode
from asya.protocol.envelope import Envelope

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import PutObjectRequestTypeDef

UPLOAD_TRIES = 3


class Results:
    """Writes below the results URI, e.g. `s3://bucket/results/`.

    Attributes:
        prefix: of the keys in the bucket; it ends with a slash, or is empty.
    """

    def __init__(self, s3: "S3Client", results_uri: str) -> None:
        parts = urlsplit(results_uri)
        self.s3 = s3
        self.bucket = parts.netloc
        self.prefix = parts.path.lstrip("/")

    def uri(self, key: str) -> str:
        """The address of a result."""
        return f"s3://{self.bucket}/{self.prefix}{key}"

    def write_envelope(self, key: str, envelope: Envelope, namespace: str) -> str:
        """Write an envelope as JSON, indented by two, with its metadata; returns the object's address.

        Raises:
            ClientError, BotoCoreError: three writes failed.
        """
        body = msgspec.json.format(encode(envelope), indent=2)
        return self.write(key, body, metadata=result_metadata(envelope, namespace))

    def write(
        self,
        key: str,
        body: bytes,
        content_type: str = "application/json",
        metadata: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Write one object and return its address; errors as in `write_envelope`."""
        request = self.put_request(key, body, content_type, metadata)
        for tries_left in reversed(range(UPLOAD_TRIES)):
            try:
                self.s3.put_object(**request)
            except (ClientError, BotoCoreError):
                if not tries_left:
                    raise
            else:
                break
        return self.uri(key)

    def put_request(
        self,
        key: str,
        body: bytes,
        content_type: str = "application/json",
        metadata: Mapping[str, str] = MappingProxyType({}),
    ) -> "PutObjectRequestTypeDef":
        """The request that writes one object, without a condition."""
        return {
            "Bucket": self.bucket,
            "Key": self.prefix + key,
            "Body": body,
            "ContentType": content_type,
            "Metadata": dict(metadata),
        }

    def remove_exactly(self, key: str, etag: str) -> None:
        """Delete an object if it still has this ETag.

        Raises:
            ClientError, BotoCoreError: the object cannot be deleted.
        """
        try:
            self.s3.delete_object(Bucket=self.bucket, Key=self.prefix + key, IfMatch=etag)
        except ClientError as error:
            if not (is_precondition_failure(error) or is_missing(error)):
                raise
