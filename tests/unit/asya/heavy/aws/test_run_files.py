"""What a job writes for the crew is read with a limit: 700 MB would end a reconciler, and with it the repairs of others."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import count
from typing import Any

import msgspec
import pytest

from asya.heavy.aws.resident_runs import Batches
from asya.heavy.aws.run_files import Heartbeats, ResultsError, RunResults
from asya.protocol.job_runs import Journal, Place, Presence, ResultPart, RunFolder, presence_key
from asya.protocol.times import format_time
from asya.testing.services.direct import MemoryS3

RUN = RunFolder("heavy", 7)
PART = ResultPart(file="part-000000.jsonl", first=0, last=0, lines=1, size=9)
MOST = 9 * 1024 * 1024


class Endless:
    """An object of 700 MB. A read without a limit fails, as it would for lack of memory."""

    def __init__(self, start: bytes) -> None:
        self.start = start
        self.given = 0

    def read(self, amount: int | None = None) -> bytes:
        assert amount is not None, "the whole object was read"
        assert (self.given + amount) <= MOST
        self.given += amount
        return self.start.ljust(amount, b" ")[:amount]


@dataclass
class Bucket:
    """A bucket in which each object of a job begins with a valid file, and goes on with spaces."""

    content: bytes
    attempts: int = 1

    def get_object(self, **_: str) -> dict[str, Any]:
        return {"Body": Endless(self.content), "ContentLength": 700_000_000}

    def head_object(self, **_: str) -> dict[str, Any]:
        return {"ContentLength": 9}

    def get_paginator(self, _: str) -> "Bucket":
        return self

    def paginate(self, *, Prefix: str, Delimiter: str = "", **_: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        if not Delimiter:
            yield {"Contents": [{"Key": f"{Prefix}000001.jsonl"}]}
            return
        for page in count():
            assert page < 3, "a page of folders more than a run can have attempts"
            yield {"CommonPrefixes": [{"Prefix": f"{Prefix}{page:03d}{number:04d}/"} for number in range(1000)]}


def journal() -> bytes:
    return msgspec.json.encode(
        Journal(run_id="r", attempt="a", sequence=1, updated_at="2026-11-20T00:00:00Z", parts=(PART,))
    )


@pytest.mark.rule("10.job-files")
@pytest.mark.parametrize("content", [journal(), b'{"type": "E", "message": "', b"", b"[" * 1000])
def test_10_no_file_of_a_job_is_read_whole(content: bytes) -> None:
    """A file that is too large counts as missing, whatever it begins with."""
    bucket: Any = Bucket(content)
    results, heartbeats = RunResults(bucket, bucket="b"), Heartbeats(bucket, bucket="b")
    assert results.commit(RUN, "a") is None
    assert results.journal(RUN, "a") is None
    assert results.last_error(RUN) is None
    assert heartbeats.latest(RUN, "a") is None
    assert list(heartbeats.partials(RUN, "a", "")) == [("fly-000001.jsonl", [])]


@pytest.mark.rule("10.job-files")
def test_10_a_job_that_makes_folders_of_attempts_does_not_keep_the_crew_busy() -> None:
    bucket: Any = Bucket(b"")
    results = RunResults(bucket, bucket="b")
    assert len(results.attempts(RUN)) == 32
    assert results.find(RUN, 1).stage == "starting"


class Littered(Bucket):
    """A bucket in which a job makes objects without end, where attempts and partials are looked for."""

    def get_object(self, **_: str) -> dict[str, Any]:
        return {"Body": BytesIO(b'{"index":0,"sequence":0,"at":"2026-11-20T00:00:00Z","data":{}}\n' * 5_000)}

    def paginate(self, *, Prefix: str, Delimiter: str = "", **_: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        for page in count():
            assert page < 10, "more pages than a poll has time for"
            names = [f"{Prefix}{page:02d}{number:04d}" for number in range(1000)]
            yield {"Contents": [] if Delimiter else [{"Key": name} for name in names]}


@pytest.mark.rule("10.job-files")
def test_10_a_job_that_litters_its_folders_does_not_keep_the_crew_busy() -> None:
    """Each poll occupies one of the invocations of the completion, which all runs share."""
    bucket: Any = Littered(b"")
    assert RunResults(bucket, bucket="b").attempts(RUN) == []
    files = list(Heartbeats(bucket, bucket="b").partials(RUN, "a", ""))
    assert (len(files), {len(partials) for _, partials in files}) == (32, {1_000})


FORMS = ({"StorageClass": "GLACIER"}, {"SSECustomerAlgorithm": "AES256"})


@pytest.mark.rule("10.job-files")
@pytest.mark.parametrize("form", FORMS)
def test_10_a_file_that_nobody_can_read_counts_as_missing(form: dict[str, str]) -> None:
    """A job may archive what it writes, or encrypt it with a key of its own."""
    s3: Any = MemoryS3()
    results, heartbeats = RunResults(s3, bucket="b"), Heartbeats(s3, bucket="b")
    for name in ("commit.json", "journal-0.json", "heartbeat-0.json", "fly-000001.jsonl", PART.file, "error.json"):
        s3.put_object(Bucket="b", Key=f"{RUN.attempts}a/{name}", Body=journal(), **form)
    assert (results.commit(RUN, "a"), results.journal(RUN, "a"), results.last_error(RUN)) == (None, None, None)
    assert results.committed_attempt(RUN) is None
    assert heartbeats.latest(RUN, "a") is None
    assert list(heartbeats.partials(RUN, "a", "")) == [("fly-000001.jsonl", [])]
    with pytest.raises(ResultsError, match="missing or unreadable"):
        list(results.lines(RUN, "a", PART))


@pytest.mark.rule("10.resident.idle")
@pytest.mark.parametrize(
    ("seconds", "counts"), [(-3600, False), (-6, False), (-5, True), (0, True), (5, True), (6, False), (1e10, False)]
)
def test_10_a_sign_of_life_is_of_now(seconds: float, counts: bool) -> None:
    """The job writes it. With a time ahead, a run that has died would be idle until then."""
    s3: Any = MemoryS3()
    now = datetime(2026, 11, 20, tzinfo=UTC)
    at = format_time(now + timedelta(seconds=seconds))
    s3.put_object(
        Bucket="b", Key=presence_key("heavy", 7), Body=msgspec.json.encode(Presence(at=at, batch=1, since=at))
    )
    assert (Batches(s3, bucket="b").presence("heavy", 7, now=now) is not None) is counts


@pytest.mark.rule("10.resident.idle")
@pytest.mark.parametrize("at", [None, 5, "", "now", "9999-99-99T00:00:00Z", {}, []])
@pytest.mark.parametrize("field", ["at", "batch", "since"])
def test_10_a_sign_of_life_of_another_form_is_none(field: str, at: object) -> None:
    s3: Any = MemoryS3()
    now = datetime(2026, 11, 20, tzinfo=UTC)
    content = {"at": format_time(now), "batch": 1, "since": format_time(now)} | {field: at}
    s3.put_object(Bucket="b", Key=presence_key("heavy", 7), Body=json.dumps(content).encode())
    found = Batches(s3, bucket="b").presence("heavy", 7, now=now)
    assert found is None or (field, at) == ("batch", 5) or field == "since"


@pytest.mark.rule("10.resident.idle")
@pytest.mark.parametrize("form", FORMS)
def test_10_a_presence_that_nobody_can_read_holds_up_no_other_actor(form: dict[str, str]) -> None:
    """The dispatcher reads those of all actors when a run of any actor waits for room."""
    s3: Any = MemoryS3()
    batches, now = Batches(s3, bucket="b"), datetime(2026, 11, 20, tzinfo=UTC)
    content = msgspec.json.encode(Presence(at=format_time(now), batch=1, since=format_time(now)))
    s3.put_object(Bucket="b", Key=presence_key("heavy", 7), Body=content)
    assert batches.presence("heavy", 7, now=now) is not None
    s3.put_object(Bucket="b", Key=presence_key("heavy", 7), Body=content, **form)
    assert batches.presence("heavy", 7, now=now) is None
    place = Place(7, 1)
    s3.put_object(Bucket="b", Key=f"{RunFolder('heavy', 7, place).prefix}manifest.json", Body=b"{}", **form)
    assert batches.close("heavy", place, "room")
