"""Manifests as JSON lines (`protocol §10`)."""

import json

import pytest
from msgspec import Raw
from msgspec.structs import replace

from asya.heavy.run_formation import decode_manifest, encode_manifest
from asya.protocol.job_runs import VERSION, Manifest, Member
from asya_spark.manifest import ManifestError, load_envelope, read_manifest
from tests.doubles.job_runs import MANIFEST

URI = "s3://bucket/runs/heavy/0000000042/manifest.json"
ROUTE = {"prev": [], "curr": "heavy", "next": []}


def envelope(name: str, payload: str) -> Raw:
    return Raw(b'{"id":"%s","route":%s,"payload":%s}' % (name.encode(), json.dumps(ROUTE).encode(), payload.encode()))


def member(name: str, payload: str) -> Member:
    return Member(id=name, position=0, attempt=1, admitted_at="2026-01-01T00:00:00Z", envelope=envelope(name, payload))


RUN = replace(
    MANIFEST,
    actor="heavy",
    number=42,
    members=(
        member("a", '{"text": "1\\n2"}'),
        member("b", '{\n "rows":\r\n 3}'),
        Member(id="c", position=1, attempt=2, admitted_at="2026-01-01T00:00:00Z", envelope_key="pending/heavy/c.json"),
    ),
)


class Content:
    """A file in pieces of a few bytes."""

    def __init__(self, content: bytes, size: int = 7) -> None:
        self._content = content
        self._size = size

    def chunks(self, uri: str) -> list[bytes]:
        """See `Files`."""
        return [self._content[start : start + self._size] for start in range(0, len(self._content), self._size)]


def read_by_job(content: bytes) -> list[tuple[str, object]]:
    """Reads a manifest as a job does; returns the ids and payloads of its inline members."""
    manifest = read_manifest(Content(content), URI)  # type: ignore[arg-type]
    inline = [one for one in manifest.members if one.inline is not None]
    return [(one.id, load_envelope(None, manifest, one).payload) for one in inline]  # type: ignore[arg-type]


@pytest.mark.rule("10.manifest.lines")
def test_10_a_manifest_is_a_line_for_its_head_and_one_for_each_member() -> None:
    text = encode_manifest(RUN)

    head, *members = map(json.loads, text.splitlines())
    assert (head["run_id"], head["version"], head["count"]) == (RUN.run_id, VERSION, 3)
    assert "members" not in head
    assert [one["id"] for one in members] == ["a", "b", "c"]
    assert read_by_job(text) == [("a", {"text": "1\n2"}), ("b", {"rows": 3})]
    again = decode_manifest(Content(text).chunks(URI))
    assert [(one.id, one.envelope_key) for one in again.members] == [
        ("a", None),
        ("b", None),
        ("c", "pending/heavy/c.json"),
    ]
    assert replace(again, members=()) == replace(RUN, members=())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (encode_manifest(RUN).rpartition(b'{"id":"c"')[0], "2"),
        (encode_manifest(RUN)[:-9], "truncated|Unterminated"),
        (encode_manifest(RUN).replace(b'"version":1', b'"version":3'), "version 3"),
        (b"", "truncated|Expecting"),
    ],
)
def test_what_is_incomplete_or_of_another_version_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decode_manifest([text])
    with pytest.raises(ManifestError, match=problem):
        read_by_job(text)


def test_an_empty_run_has_a_head_only() -> None:
    empty: Manifest = replace(RUN, members=())

    assert decode_manifest([encode_manifest(empty)]).members == ()
