"""The stored slices of sets: small ones in the table, larger ones in S3 (`protocol §9`).

The slices of a large set are spread over several partition keys, because DynamoDB writes at most 1,000 units a second
under one. The first of these keys is the set's own. A version that knew no shards stored every slice there, so its slices
are found as well.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from asya.capabilities.fan_in.aws import sets
from asya.capabilities.fan_in.sets import ORIGIN, SetTooLargeError
from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Item, Key, Value
from asya.protocol.errors import ErrorInfo
from asya.protocol.keys import SLICES_PREFIX, safe_segment
from asya.protocol.slices import SliceEnded, SliceHeader

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

Readers = Callable[[Callable[[Item], tuple[int, bytes]], Iterable[Item]], Iterator[tuple[int, bytes]]]

# Larger slices are stored in S3: a write unit holds 1 KiB, and a slice's item is written in one or five of them.
INLINE_BYTES = 4 * 1024
# Reads from S3 take some 20 ms each; the largest set has 5,000 of them.
_READERS = 16


class UnknownSliceError(LookupError):
    """The table has no such slice, or it has expired."""


class SliceStore:
    """Stores slices and the ends of slices once, and reads them. Every write is idempotent.

    Raises:
        botocore.exceptions.ClientError: from every method, if a call to the table or the bucket fails.
    """

    def __init__(
        self, dynamodb: "DynamoDBClient", s3: "S3Client", *, table: str, bucket: str, threaded: bool = False
    ) -> None:
        self._table = Table(dynamodb, table)
        self._s3 = s3
        self._bucket = bucket
        self._map: Readers = ThreadPoolExecutor(_READERS, thread_name_prefix="slices").map if threaded else map

    def store(self, header: SliceHeader, body: bytes, *, expires_at: float) -> str | None:
        """Store a slice unless its set has one with its index: the first one wins.

        Args:
            body: the slice's whole envelope.
            expires_at: seconds since 1970.

        Returns:
            The URI of the slice's object, if its body is in S3.
        """
        key = sets.slice_key(header.set_id, header.slice_index, header.slice_count)
        if len(body) <= INLINE_BYTES:
            self._put_once(key, {"body": body}, expires_at)
            return None
        object_key = self._put_object(header, body)
        self._put_once(key, {"object": object_key, "size": len(body)}, expires_at)
        return f"s3://{self._bucket}/{object_key}"

    def store_end(self, ended: SliceEnded, *, expires_at: float) -> None:
        """Store the error of a slice that ended without a result, unless an earlier one is stored."""
        key = sets.ended_key(ended.set_id, ended.slice_index, ended.slice_count)
        self._put_once(key, {"error": sets.json_text(ended.named_error)}, expires_at)

    def load(self, set_id: str, index: int, slice_count: int) -> bytes:
        """Read the envelope of a stored slice.

        Raises:
            UnknownSliceError: the slice was never stored, or has expired.
        """
        item = self._table.get(sets.slice_key(set_id, index, slice_count))
        if not item:
            raise UnknownSliceError(f"slice {index} of set {set_id} is not stored; it may have expired")
        return self._body(item)

    def load_all(self, set_id: str, slice_count: int, limit: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Read the index and envelope of every stored slice once, shard by shard.

        Args:
            limit: the most bytes of all slices. Several are read at the same time, so their sizes count before.

        Raises:
            SetTooLargeError: the slices have more bytes.
        """
        seen: set[int] = set()
        size = 0
        for shard in range(sets.shard_count(slice_count)):
            for page in self._table.pages(sets.slices_of(set_id, shard)):
                unseen = [item for item in page if sets.slice_index(item) not in seen]
                seen.update(map(sets.slice_index, unseen))
                size += sum(map(_size, unseen))
                if limit is not None and size > limit:
                    raise SetTooLargeError(limit)
                yield from self._map(self._read, unseen)

    def copy_results(self, from_set: str, to_set: str, slice_count: int, *, expires_at: float) -> frozenset[int]:
        """Copy the stored slices of a set into another one, except slice 0. A body in S3 is shared by both.

        Args:
            slice_count: the number of slices of both sets.
            expires_at: of the copies, in seconds since 1970.

        Returns:
            The indices of the copied slices.
        """

        def copy(item: Item) -> tuple[int, bytes]:
            index = sets.slice_index(item)
            content = {name: item[name] for name in ("body", "object", "size") if name in item}
            self._put_once(sets.slice_key(to_set, index, slice_count), content, expires_at)
            return index, b""

        seen = {ORIGIN}
        for shard in range(sets.shard_count(slice_count)):
            for page in self._table.pages(sets.slices_of(from_set, shard)):
                unseen = [item for item in page if sets.slice_index(item) not in seen]
                seen.update(map(sets.slice_index, unseen))
                for _ in self._map(copy, unseen):
                    pass
        return frozenset(seen - {ORIGIN})

    def load_error(self, set_id: str, index: int, slice_count: int) -> ErrorInfo | None:
        """Read the error of a slice that ended without a result; None if it has none."""
        item = self._table.get(sets.ended_key(set_id, index, slice_count))
        return sets.error_of(item) if item else None

    def _put_once(self, key: Key, content: Mapping[str, Value], expires_at: float) -> None:
        """Write an item unless it exists."""
        self._table.write(put(key, {**content, "expires_at": int(expires_at)}).if_absent())

    def _put_object(self, header: SliceHeader, body: bytes) -> str:
        """Write a body to S3. The key contains a digest, so a duplicate overwrites nothing."""
        digest = hashlib.sha256(body).hexdigest()[:16]
        key = f"{SLICES_PREFIX}{safe_segment(header.set_id)}/{header.slice_index:06d}-{digest}.json"
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType="application/json")
        return key

    def _read(self, item: Item) -> tuple[int, bytes]:
        return sets.slice_index(item), self._body(item)

    def _body(self, item: Item) -> bytes:
        if "body" in item:
            return item.data("body")
        return self._s3.get_object(Bucket=self._bucket, Key=item.text("object"))["Body"].read()


def _size(item: Item) -> int:
    """The bytes of a slice; 0 for one in S3 that an earlier version has stored, without its size."""
    return len(item.data("body")) if "body" in item else item.integer("size", 0)
