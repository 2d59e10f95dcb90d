"""The frames of a hop, stored before any of them is sent (`protocol §6`, `frames: buffered`)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError
from msgspec import Raw

from asya.protocol.envelope import Envelope
from asya.protocol.frame import Frame
from asya.protocol.keys import FRAMES_PREFIX, hop_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class _Changes(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was set, and what was deleted: apart, because `null` is a value too."""

    set: dict[str, Raw] = {}
    deleted: tuple[str, ...] = ()


class _StoredFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A frame; without a payload it has the one that was received."""

    payload: Raw | msgspec.UnsetType = msgspec.UNSET
    next: tuple[str, ...] | None = None
    headers: _Changes = _Changes()
    status: _Changes = _Changes()
    alone: bool = False


_decoder = msgspec.json.Decoder(list[_StoredFrame])


class FrameBuffer:
    """One object per hop in the mesh's own bucket: `frames/{id}/{generation}/{position}.json`.

    It holds the complete list or is not there, and is written once: the first writer's list is everybody's.
    """

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def load(self, envelope: Envelope) -> list[Frame] | None:
        """The frames of this hop if an earlier run has stored them.

        Raises:
            ClientError, BotoCoreError: if it cannot be known now.
        """
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=hop_key(FRAMES_PREFIX, envelope))
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchKey", "404"):
                return None
            raise
        return [_frame(stored) for stored in _decoder.decode(answer["Body"].read())]

    def save(self, envelope: Envelope, frames: Iterable[Frame]) -> list[Frame]:
        """Keep the frames of this hop, and give those that are stored: another run may have been first.

        Raises:
            ClientError, BotoCoreError: if they cannot be stored now; then none may be sent.
        """
        ours = list(frames)
        body = msgspec.json.encode([_stored(frame) for frame in ours])
        try:
            self._s3.put_object(
                Bucket=self._bucket,
                Key=hop_key(FRAMES_PREFIX, envelope),
                Body=body,
                ContentType="application/json",
                IfNoneMatch="*",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("PreconditionFailed", "412"):
                raise
            theirs = self.load(envelope)
            if theirs is None:
                raise
            return theirs
        return ours


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
    found: dict[str, Raw | None] = {name: Raw(bytes(raw)) for name, raw in changes.set.items()}
    return found | dict.fromkeys(changes.deleted)
