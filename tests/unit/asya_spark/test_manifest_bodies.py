"""Envelopes of a run are read ahead of the calls (`protocol §10`)."""

import json
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import pytest

from asya_spark.files import Writer
from asya_spark.manifest import THREADS, Member, envelopes

MANIFEST: Any = SimpleNamespace(root="s3://bucket/")


def body(index: int) -> dict[str, Any]:
    return {"id": f"e{index}", "route": {"prev": [], "curr": "a", "next": []}, "payload": index}


def member(index: int, *, away: bool) -> Member:
    inline = None if away else json.dumps({"id": f"e{index}", "envelope": body(index)}).encode()
    key = f"pending/{index}.json" if away else None
    return Member(index, f"e{index}", 0, 1, 0, None, inline, key, is_at_risk=False)


class Objects:
    """Files that let a read go on once `together` reads are on their way."""

    def __init__(self, together: int, missing: int = -1) -> None:
        self._barrier = threading.Barrier(together)
        self._missing = missing
        self.reads = 0

    def read(self, uri: str) -> bytes:
        index = int(uri.removeprefix("s3://bucket/pending/").removesuffix(".json"))
        self._barrier.wait(30)
        self.reads += 1
        if index == self._missing:
            raise FileNotFoundError(f"there is no file {uri}")
        return json.dumps(body(index)).encode()

    def chunks(self, uri: str) -> Iterator[bytes]:
        raise AssertionError(f"{uri} read in pieces")

    def write(self, uri: str, content: bytes) -> None:
        raise AssertionError(f"{uri} written")

    def open(self, uri: str) -> AbstractContextManager[Writer]:
        raise AssertionError(f"{uri} written")


def test_large_envelopes_are_read_at_the_same_time_and_given_in_their_order() -> None:
    files = Objects(together=THREADS)
    members = [member(index, away=True) for index in range(3 * THREADS)]
    assert [envelope.payload for envelope in envelopes(files, MANIFEST, members)] == list(range(3 * THREADS))


def test_no_more_envelopes_are_read_than_there_are_threads_for() -> None:
    files = Objects(together=1)
    members = [member(index, away=True) for index in range(10 * THREADS)]
    ahead = envelopes(files, MANIFEST, members)
    assert next(ahead).payload == 0
    ahead.close()  # type: ignore[attr-defined]
    assert files.reads <= THREADS + 1


def test_small_envelopes_are_in_the_manifest() -> None:
    files = Objects(together=1)
    assert [one.payload for one in envelopes(files, MANIFEST, [member(0, away=False), member(1, away=True)])] == [0, 1]
    assert files.reads == 1


def test_a_missing_object_is_told_when_its_member_is_due() -> None:
    ahead = envelopes(Objects(together=1, missing=1), MANIFEST, [member(index, away=True) for index in range(3)])
    assert next(ahead).payload == 0
    with pytest.raises(FileNotFoundError, match=r"pending/1\.json"):
        next(ahead)
