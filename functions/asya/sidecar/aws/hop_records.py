"""Stores what repeats of a hop need: marks of completed hops, frames, and inputs (`protocol §4`, `§6`, `§12`)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError
from msgspec import Raw

from asya.function.aws.bounded_reads import is_missing, is_unreadable, largest_payload, read_at_most
from asya.function.aws.conditional_writes import put_if_absent
from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Key
from asya.function.hop import Hop
from asya.protocol.codec import encode
from asya.protocol.envelope import Envelope, Frame
from asya.protocol.keys import buffered_prefix, hop_key, input_key
from asya.protocol.table_keys import own_hops
from asya.protocol.task_key import fingerprint, without_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


class CompletedHops:
    """The table `asya-{namespace}-hops`: pk = actor and envelope id, sk = generation, position, attempt and key.

    The key is the fingerprint of the task's key. The actor leads, so that the role of each may write its own marks alone. The
    next attempt of a retried hop runs; a redelivery of a completed attempt does not.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str, retention_seconds: float) -> None:
        self._table = Table(dynamodb, table)
        self._retention_seconds = retention_seconds

    def is_completed(self, hop: Hop) -> bool:
        """Whether this attempt was completed before.

        Raises:
            ClientError, BotoCoreError: the mark cannot be read.
        """
        return bool(self._table.get(_key(hop)))

    def mark(self, hop: Hop, *, epoch_seconds: float) -> None:
        """Mark this attempt as completed, after its sends and before its acknowledgement.

        Raises:
            ClientError, BotoCoreError: the mark cannot be written.
        """
        self._table.write(put(_key(hop), {"expires_at": int(epoch_seconds + self._retention_seconds)}))


def _key(hop: Hop) -> Key:
    envelope_id, generation, position, attempt, key = hop.copy_key
    return Key(f"{own_hops(hop.actor)}{envelope_id}", f"{generation:04d}#{position:06d}#{attempt:06d}#{key}")


class _Changes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Changed and deleted members; separate, because `null` is also a value."""

    set: dict[str, Raw] = {}
    deleted: tuple[str, ...] = ()


class _StoredFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored frame; without a payload it has the payload that the hop received."""

    payload: Raw | msgspec.UnsetType = msgspec.UNSET
    next: tuple[str, ...] | None = None
    headers: _Changes = _Changes()
    status: _Changes = _Changes()
    alone: bool = False


_decoder = msgspec.json.Decoder(list[_StoredFrame])


class FrameBuffer:
    """One object per hop in the mesh's own bucket: `buffered/{actor}/{id}/{generation}/{position}-{key}.json`.

    An object holds the complete list of frames and is written once; all later runs use the first list. The key is the
    fingerprint of the task's key. A function without code of users writes `{position}.json`, because it has checked the key.

    Args:
        actor: the actor of this function, which alone writes its frames. The fan-in actors read those of all actors.
    """

    def __init__(self, s3: "S3Client", bucket: str, actor: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._actor = actor

    def load(self, envelope: Envelope, actor: str | None = None) -> list[Frame] | None:
        """Read the frames that an earlier run of this hop has stored; None if there are none.

        Args:
            actor: the actor of the hop, if that is not this function. Its frames count if they were kept for one key alone,
                because each sender to that actor can forge an envelope of this id. Its code writes them, so what has another
                form, or more bytes than the memory has room for, counts as none.

        Raises:
            ClientError, BotoCoreError: the object cannot be read.
        """
        key = hop_key(buffered_prefix(actor or self._actor), envelope, fingerprint(envelope))
        if actor is not None:
            kept = self._read_theirs(key)
            others = self._with_keys(key) if kept is None else []
            return self._read_theirs(others[0]) if len(others) == 1 else kept
        try:
            return self._read(key)
        except ClientError as error:
            if not is_missing(error):
                raise
        return None

    def _with_keys(self, key: str) -> list[str]:
        """The lists of a hop that were kept for envelopes with a key."""
        prefix = f"{key.removesuffix('.json')}-"
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def save(self, envelope: Envelope, frames: Iterable[Frame]) -> list[Frame]:
        """Store the frames of this hop; returns the stored ones, which an earlier run may have written.

        Raises:
            ClientError, BotoCoreError: the object cannot be written, so no frame may be sent.
        """
        new_frames = list(frames)
        body = msgspec.json.encode([_stored(frame) for frame in new_frames])
        key = hop_key(buffered_prefix(self._actor), envelope, fingerprint(envelope))
        if put_if_absent(self._s3, bucket=self._bucket, key=key, body=body):
            return new_frames
        return self._read(key)

    def _read(self, key: str) -> list[Frame]:
        answer = self._s3.get_object(Bucket=self._bucket, Key=key)
        return [_frame(stored) for stored in _decoder.decode(answer["Body"].read())]

    def _read_theirs(self, key: str) -> list[Frame] | None:
        """Read what the code of another actor has written; None if it is no list of frames that this function can hold."""
        try:
            body = read_at_most(self._s3.get_object(Bucket=self._bucket, Key=key)["Body"], largest_payload())
            return [_frame(stored) for stored in _decoder.decode(body)] if body is not None else None
        except ClientError as error:
            if not (is_missing(error) or is_unreadable(error)):
                raise
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        return None


def _stored(frame: Frame) -> _StoredFrame:
    payload = msgspec.UNSET if frame.payload is None else frame.payload
    return _StoredFrame(payload, frame.next, _changes(frame.headers), _changes(frame.status), frame.alone)


def _changes(values: dict[str, Raw | None]) -> _Changes:
    return _Changes(
        {name: raw for name, raw in values.items() if raw is not None},
        tuple(name for name, raw in values.items() if raw is None),
    )


def _frame(stored: _StoredFrame) -> Frame:
    payload = Raw(bytes(stored.payload)) if isinstance(stored.payload, Raw) else None
    return Frame(payload, stored.next, _values(stored.headers), _values(stored.status), stored.alone)


def _values(changes: _Changes) -> dict[str, Raw | None]:
    values: dict[str, Raw | None] = {name: Raw(bytes(raw)) for name, raw in changes.set.items()}
    return values | dict.fromkeys(changes.deleted)


class InputArchive:
    """One object per hop in the mesh's own bucket: `hops/{id}/{generation}/{position}.{actor}.json`.

    Args:
        actor: the actor of this function, which alone writes its inputs.
    """

    def __init__(self, s3: "S3Client", bucket: str, actor: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._actor = actor

    def save(self, envelope: Envelope) -> None:
        """Store an envelope as stamped at the start of its hop, with its payload; a redelivery writes the same one again.

        Raises:
            ClientError, BotoCoreError: the object cannot be written.
        """
        self._s3.put_object(
            Bucket=self._bucket,
            Key=input_key(envelope, self._actor),
            Body=encode(without_key(envelope)),
            ContentType="application/json",
        )
