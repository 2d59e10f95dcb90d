"""Writes ended envelopes and the rows of their index; the first end of a generation stays (`protocol §11`)."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from asya.ends.results import ResultRow, day_of, read_metadata, recent_object, result_metadata
from asya.ends.stored_json import indented
from asya.function.aws.bounded_reads import is_missing
from asya.function.aws.conditional_writes import is_precondition_failure, is_write_conflict
from asya.function.aws.receipt import Receipt
from asya.function.nack import ServiceError
from asya.protocol.codec import ParseError, decode, encode
from asya.protocol.envelope import Envelope
from asya.protocol.keys import superseded_key

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
        """Write an envelope as JSON (`stored_json`), with its metadata; returns the object's address.

        Raises:
            ClientError, BotoCoreError: three writes failed.
        """
        body = indented(encode(envelope))
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


# Other writers of one key are rare: a re-run of the same end, or the end of another generation.
_ROUNDS = 5
_PAUSE_SECONDS = 0.1


class KeyContestedError(ServiceError):
    """An object kept changing while it was written; the message stays on the queue."""


@dataclass(frozen=True, slots=True)
class StoredEnd:
    """The end that an object holds after a write.

    Attributes:
        envelope: what the object holds: the caller's envelope, or that of an earlier run of the same end.
    """

    uri: str
    envelope: Envelope


@dataclass(frozen=True, slots=True)
class _Object:
    """An object as it was read."""

    etag: str
    generation: int
    phase: str
    body: bytes

    @property
    def envelope(self) -> Envelope | None:
        """The envelope in the object, without the spaces that the object adds; None if it holds none."""
        try:
            return decode(msgspec.json.format(self.body, indent=-1))
        except (ParseError, msgspec.DecodeError):
            return None


@dataclass(frozen=True, slots=True)
class EndObjects:
    """Writes the objects of ends on conditions.

    Attributes:
        pause: sleeps for so many seconds, after a conflict with another write.
    """

    results: Results
    namespace: str
    pause: Callable[[float], None]

    def write(self, key: str, envelope: Envelope) -> StoredEnd | None:
        """Write the object of an end, unless another run has written this end.

        An object of a lower generation is replaced, and one of another phase too: the caller holds the claim.

        Returns:
            The end that the object holds; None if it holds one of a later generation.

        Raises:
            ClientError, BotoCoreError, KeyContestedError: the object can be neither written nor read.
        """
        body = indented(encode(envelope))
        request = self.results.put_request(key, body, metadata=result_metadata(envelope, self.namespace))
        condition: PutObjectRequestTypeDef = {**request, "IfNoneMatch": "*"}
        for _ in range(_ROUNDS):
            if self._put(condition):
                return StoredEnd(self.results.uri(key), envelope)
            current = self._read(key)
            if current is None:
                condition = {**request, "IfNoneMatch": "*"}
                continue
            if current.generation > envelope.generation:
                return None
            stored = envelope if current.body == body else current.envelope
            if stored is not None and (current.generation, current.phase) == (envelope.generation, _phase(envelope)):
                return StoredEnd(self.results.uri(key), stored)
            condition = {**request, "IfMatch": current.etag}
        raise KeyContestedError(f"{self.results.uri(key)} kept changing while it was written")

    def supersede(self, envelope: Envelope) -> str:
        """Keep an end that does not count; returns the address. The same end has the same key.

        Raises:
            ClientError, BotoCoreError: the object cannot be written.
        """
        key = superseded_key(envelope)
        self.results.write_envelope(key, envelope, self.namespace)
        return self.results.uri(key)

    def move_superseded(self, key: str, generation: int) -> None:
        """Move an object of this generation or an earlier one to `superseded/`; an object of a later one stays.

        Raises:
            ClientError, BotoCoreError: the object can be neither read, written nor deleted.
        """
        current = self._read(key)
        if current is None or current.generation > generation:
            return
        if current.envelope is not None:
            self.supersede(current.envelope)
        self.results.remove_exactly(key, current.etag)

    def remove(self, key: str, generation: int) -> None:
        """Delete an object of this generation or an earlier one; an object of a later one stays.

        Raises:
            ClientError, BotoCoreError: the object can be neither read nor deleted.
        """
        try:
            answer = self.results.s3.head_object(Bucket=self.results.bucket, Key=self.results.prefix + key)
        except ClientError as error:
            if is_missing(error):
                return
            raise
        if _end_in(answer.get("Metadata", {}))[0] <= generation:
            self.results.remove_exactly(key, answer["ETag"])

    def _put(self, request: "PutObjectRequestTypeDef") -> bool:
        """Put an object; False if the condition does not hold, or another write of the key is at work."""
        for tries_left in reversed(range(UPLOAD_TRIES)):
            try:
                self.results.s3.put_object(**request)
            except ClientError as error:
                if is_precondition_failure(error) or is_missing(error):
                    return False
                if is_write_conflict(error):
                    self.pause(_PAUSE_SECONDS)
                    return False
                if not tries_left:
                    raise
            except BotoCoreError:
                if not tries_left:
                    raise
            else:
                return True
        return False

    def _read(self, key: str) -> "_Object | None":
        try:
            answer = self.results.s3.get_object(Bucket=self.results.bucket, Key=self.results.prefix + key)
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        return _Object(answer["ETag"], *_end_in(answer.get("Metadata", {})), answer["Body"].read())


def _end_in(metadata: Mapping[str, str]) -> tuple[int, str]:
    """Generation and phase in the metadata of an object; those of a foreign object are 0 and empty."""
    values = read_metadata(metadata)
    generation = values.get("generation", "")
    return int(generation) if generation.isdecimal() else 0, values.get("phase", "")


def _phase(envelope: Envelope) -> str:
    return envelope.end_phase


CONTENT_TYPE = "application/x-ndjson"


class NotIndexedError(ServiceError):
    """Index rows could not be written; their messages stay on the queue."""


class ResultIndex:
    """Collects rows; a message may be acknowledged only after the receipt of its row is resolved without an error.

    A redelivered message writes its row again, possibly into another object. Readers deduplicate by id and generation.
    """

    def __init__(self, results: Results) -> None:
        self._results = results
        self._pending: dict[str, list[tuple[ResultRow, Receipt]]] = defaultdict(list)

    def add(self, row: ResultRow) -> Receipt:
        """Add a row to the next flush."""
        receipt = Receipt("index row")
        self._pending[day_of(row)].append((row, receipt))
        return receipt

    def flush(self) -> None:
        """Write the pending rows, one object for each day, and resolve their receipts."""
        pending, self._pending = self._pending, defaultdict(list)
        for day, pairs in pending.items():
            key, body = recent_object(day, [row for row, _ in pairs])
            problem: NotIndexedError | None = None
            try:
                self._results.write(key, body, CONTENT_TYPE)
            except (ClientError, BotoCoreError) as error:
                problem = NotIndexedError(
                    f"{len(pairs)} index rows could not be written to {self._results.uri(key)}: {error}"
                )
            for _, receipt in pairs:
                receipt.resolve(problem)
