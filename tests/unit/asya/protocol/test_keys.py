"""protocol §11, S3 keys: one lookup by id, and no id escapes its prefix."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.codec import decode
from asya.protocol.keys import last_actor, result_key, safe_segment, sump_key, superseded_key
from asya.protocol.mesh_table import Sink
from tests.doubles.envelopes import message, status

IDS = st.text(min_size=1, max_size=64) | st.lists(st.sampled_from([".", "..", "/", "a", "%2E", "%", "\\"])).map("".join)


@pytest.mark.rule("11.keys")
@given(IDS)
def test_no_id_escapes_its_prefix(envelope_id: str) -> None:
    segment = safe_segment(envelope_id)
    assert re.fullmatch(r"[A-Za-z0-9_.%-]*", segment)
    assert ".." not in segment
    assert not segment.startswith(".")
    assert not segment.endswith(".")


@given(IDS, IDS)
@pytest.mark.slow
def test_no_two_ids_share_a_key(one: str, other: str) -> None:
    assert (safe_segment(one) == safe_segment(other)) == (one == other)


@pytest.mark.rule("11.keys")
@pytest.mark.parametrize(
    ("envelope_id", "segment"),
    [
        ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("v1.2_x", "v1.2_x"),
        ("a..b", "a%2E%2Eb"),
        (".", "%2E"),
        ("a/b c", "a%2Fb%20c"),
        ("größe", "gr%C3%B6%C3%9Fe"),
        ("50%", "50%25"),
    ],
)
def test_unsafe_characters_are_encoded(envelope_id: str, segment: str) -> None:
    assert safe_segment(envelope_id) == segment


def test_the_longest_id_fits_into_a_key() -> None:
    assert len("results/succeeded/" + safe_segment("/" * 256) + ".json") <= 1024


@pytest.mark.rule("11.keys")
@pytest.mark.parametrize(
    ("phase", "key"),
    [
        ("succeeded", "succeeded/env-1.json"),
        ("failed", "failed/env-1.json"),
        ("canceled", "canceled/env-1.json"),
        ("paused", "paused/env-1.json"),
    ],
)
def test_by_id_the_phase_says_where(phase: str, key: str) -> None:
    assert result_key(decode(message(status=status(phase=phase))), Sink()) == key
    assert sump_key("env-1") == "sump/env-1.json"


BY_TIME = Sink(layout="by-time", succeeded_prefix="happy-asya/", failed_prefix="error-asya/")


@pytest.mark.rule("11.keys.by-time", "14.by-time")
@pytest.mark.parametrize("updated_at", ["2025-11-18T14:30:45.123456Z", "2025-11-18T16:30:45.123456+02:00"])
def test_by_time_is_the_legacy_layout(updated_at: str) -> None:
    body = message(
        id="abc-123",
        route={"prev": ["prep", "text-processor"], "curr": "", "next": []},
        status=status(phase="succeeded", updated_at=updated_at),
    )
    assert result_key(decode(body), BY_TIME) == "happy-asya/2025-11-18T14:30:45.123456Z/text-processor/abc-123.json"


@pytest.mark.rule("14.by-time")
def test_by_time_has_six_fractional_digits_also_for_whole_seconds() -> None:
    body = message(status=status(phase="failed", updated_at="2025-11-18T14:30:45Z"))
    assert result_key(decode(body), BY_TIME) == "error-asya/2025-11-18T14:30:45.000000Z/infer/env-1.json"


@pytest.mark.rule("11.keys.by-time")
def test_the_last_actor() -> None:
    envelope = decode(message(route={"prev": [], "curr": "", "next": []}))
    assert last_actor(envelope) == "unknown"
    hostile = msgspec.structs.replace(envelope.route, curr="../../etc")
    assert last_actor(msgspec.structs.replace(envelope, route=hostile)) == "%2E%2E%2F%2E%2E%2Fetc"


def superseded_at(**members: object) -> str:
    return superseded_key(decode(message(**members)))


@pytest.mark.rule("11.keys.superseded")
def test_ends_that_differ_never_share_a_superseded_key_and_a_redelivery_does() -> None:
    times = {"updated_at": "2030-01-01T00:00:00.000000Z"}
    same = (
        superseded_at(),
        superseded_at(status=status(**times)),
        superseded_at(headers={"tenant": "acme", "x-asya-first-attempt": "2030-01-01T00:00:00.000000Z"}),
    )
    assert len(set(same)) == 1
    assert same[0].startswith("superseded/env-1/0/1-pending-")
    error = {"type": "ValueError", "message": "bad", "mro": [], "traceback": ""}
    others = (
        superseded_at(payload=2),
        superseded_at(headers={"tenant": "other"}),
        superseded_at(headers={"tenant": "acme", "x-asya-generation": 2}),
        superseded_at(route={"prev": ["prep"], "curr": "infer", "next": []}),
        superseded_at(route={"prev": [], "curr": "infer", "next": ["post"]}),
        superseded_at(status=status(phase="failed", reason="Timeout")),
        superseded_at(status=status(phase="failed", reason="RuntimeError")),
        superseded_at(status=status(phase="failed", reason="RuntimeError", error=error)),
        superseded_at(id="a x"),
    )
    assert len({*same, *others}) == 1 + len(others)
    assert others[-1].startswith("superseded/a%20x/0/1-")
