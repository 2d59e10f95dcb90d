"""The first writer of an object wins; a conflict of writers is no defeat."""

import io
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.function.aws.conditional_writes import put_if_absent
from asya.heavy.aws.pending import INLINE_BYTES, Pending
from asya.heavy.aws.run_files import Manifests
from asya.protocol.codec import decode
from asya.protocol.job_runs import Member
from asya.sidecar.aws.hop_records import FrameBuffer
from asya.testing.services.clients import Bucket
from asya.testing.services.direct import MemoryS3
from tests.doubles.envelopes import message
from tests.doubles.job_runs import MANIFEST

CONFLICT = b"<Error><Code>ConditionalRequestConflict</Code><Message>At work</Message></Error>"
MEMBER = Member(id="a", position=0, attempt=1, admitted_at="2026-01-01T00:00:00.000000Z")


class ConflictingS3(MemoryS3):
    """An S3 whose first writes meet a conflict."""

    conflicts = 1

    def put_object(self, **request: Any) -> dict[str, Any]:
        if self.conflicts:
            self.conflicts -= 1
            answer: Any = {
                "Error": {"Code": "ConditionalRequestConflict"},
                "ResponseMetadata": {"HTTPStatusCode": 409},
            }
            raise ClientError(answer, "PutObject")
        return super().put_object(**request)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between tries, which take no time."""
    taken: list[float] = []
    monkeypatch.setattr(time, "sleep", taken.append)
    return taken


def write(s3: Any) -> bool:
    return put_if_absent(s3, bucket="mesh-bucket", key="frames/a.json", body=b"{}")


@pytest.mark.parametrize("conflicts", [1, 2, 3])
def test_a_conflict_is_tried_again_after_longer_pauses(pauses: list[float], conflicts: int) -> None:
    s3 = ConflictingS3()
    s3.conflicts = conflicts
    assert write(s3)
    assert s3.content("frames/a.json") == b"{}"
    assert len(pauses) == conflicts
    assert pauses == sorted(pauses)
    assert sum(pauses) < 0.5


def test_a_conflict_that_lasts_is_raised(pauses: list[float]) -> None:
    s3 = ConflictingS3()
    s3.conflicts = 100
    with pytest.raises(ClientError, match="ConditionalRequestConflict"):
        write(s3)
    assert len(pauses) == 3
    assert not s3.objects


def test_the_winner_of_a_conflict_keeps_the_object(pauses: list[float]) -> None:
    s3 = ConflictingS3(bucket=Bucket(name="mesh-bucket", objects={"frames/a.json": b"first"}))
    assert not write(s3)
    assert s3.content("frames/a.json") == b"first"
    assert len(pauses) == 1


def test_other_errors_are_raised_at_once(pauses: list[float]) -> None:
    s3 = MemoryS3(fails=lambda action, key: True)
    with pytest.raises(ClientError, match="SlowDown"):
        write(s3)
    assert s3.calls == [("put", "frames/a.json")]
    assert not pauses


def test_the_sdk_does_not_retry_a_conflict_itself(pauses: list[float]) -> None:
    """Else the tries would multiply."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 3})
    s3 = boto3.client("s3", "eu-west-1", aws_access_key_id="a", aws_secret_access_key="b", config=config)
    sent: list[str] = []
    s3.meta.events.register("request-created.s3.PutObject", lambda request, **_: sent.append(request.url))
    s3.meta.events.register("before-send.s3.PutObject", lambda request, **_: AWSResponse(request.url, 409, {}, Body()))
    with pytest.raises(ClientError, match="ConditionalRequestConflict"):
        s3.put_object(Bucket="mesh-bucket", Key="k", Body=b"", IfNoneMatch="*")
    assert len(sent) == 1


class Body(io.BytesIO):
    """The body of the answer to a conflict."""

    def __init__(self) -> None:
        super().__init__(CONFLICT)

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


class Table:
    """A DynamoDB client that accepts all writes."""

    def transact_write_items(self, **_: Any) -> dict[str, Any]:
        return {}


def buffer_frames(s3: Any) -> None:
    assert FrameBuffer(s3, "mesh-bucket", "infer").save(decode(message(id="a")), []) == []


def form_run(s3: Any) -> None:
    assert Manifests(s3, bucket="mesh-bucket").create(MANIFEST)


def pause_envelope(s3: Any) -> None:
    assert PausedEnvelopes(s3, "mesh-bucket").save(PauseKey("a", 0, 1), decode(message(id="a")))


def make_pending(s3: Any) -> None:
    table: Any = Table()
    pending = Pending(table, s3, table="asya-ns-pending", bucket="mesh-bucket", pause=time.sleep)
    large = b" " * (INLINE_BYTES + 1)
    stored = pending.store("heavy", MEMBER, large)
    assert pending.enqueue("heavy", [stored], now=datetime(2026, 1, 1, tzinfo=UTC)) == [True]


@pytest.mark.parametrize("write_object", [buffer_frames, form_run, pause_envelope, make_pending])
def test_every_conditional_writer_survives_a_conflict(pauses: list[float], write_object: Callable[[Any], None]) -> None:
    s3 = ConflictingS3()
    write_object(s3)
    assert len(s3.objects) == 1
    assert len(pauses) == 1
