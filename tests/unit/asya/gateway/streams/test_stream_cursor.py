"""Encoding and decoding of stream cursors (`protocol §13`, `Last-Event-ID`)."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya.gateway.streams.stream_cursor import (
    MAX_CURSOR_BYTES,
    PartialMark,
    Settled,
    StreamCursor,
    decode,
    paused_state,
)

cells = st.dictionaries(st.tuples(st.integers(0, 40), st.integers(1, 5)), st.integers(1, 3), max_size=60)
marks = st.lists(st.builds(PartialMark, *[st.integers(0, 99)] * 4), max_size=4, unique_by=lambda mark: mark.position)
any_cursor = st.builds(
    StreamCursor,
    generation=st.integers(0, 9999),
    state=st.sampled_from(["", "p", "r", "f", paused_state("2026-11-20T09:00:00Z")]),
    percent=st.integers(0, 100),
    run_at=st.integers(0, 2**42),
    steps=cells,
    partials=marks.map(lambda marks: tuple(sorted(marks))),
)


@pytest.mark.rule("13.stream.id")
@given(any_cursor)
@pytest.mark.slow
def test_a_cursor_survives_encoding(cursor: StreamCursor) -> None:
    text = cursor.encode()
    assert decode(text) == cursor
    assert re.fullmatch(r"[A-Za-z0-9._~-]+", text)


@pytest.mark.parametrize("hops", [1, 25, 1000])
def test_a_regular_cursor_takes_a_few_bytes(hops: int) -> None:
    steps = {(position, 1): 3 for position in range(hops)} | {(hops, attempt): 3 for attempt in (1, 2, 3)}
    assert len(StreamCursor(state="r", percent=99, steps=steps).encode()) < 40


def test_a_cursor_of_an_irregular_loop_stays_small() -> None:
    chance = random.Random(1)
    steps = {(position, attempt): chance.randint(1, 3) for position in range(75) for attempt in (1, 2)}
    assert len(StreamCursor(state="r", steps=steps).encode()) < 300


@pytest.mark.rule("13.stream.snapshot")
@settings(max_examples=15)
@given(st.integers(0, 2**31))
def test_a_cursor_never_exceeds_its_limit(seed: int) -> None:
    """A maximally irregular task settles its first hops, and the digest identifies them."""
    chance = random.Random(seed)
    steps = {(position, attempt): chance.randint(1, 3) for position in range(900) for attempt in range(1, 4)}
    cursor = StreamCursor(state="r", percent=80, steps=steps, partials=(PartialMark(899, 3, 1, 7),))
    text = cursor.encode()
    assert len(text) <= MAX_CURSOR_BYTES
    decoded = decode(text)
    assert decoded is not None
    assert decoded.settled is not None
    assert decoded.encode() == text
    assert decoded.expand(steps) == cursor
    # A late step of a settled hop: the cursor no longer identifies the shown events.
    late = dict(steps)
    late[0, 4] = 1
    assert decoded.expand(late) is None
    # A late step of another hop is a new event.
    late = {**steps, (899, 4): 1}
    assert decoded.expand(late) == cursor


def test_one_hop_with_many_attempts_is_settled() -> None:
    chance = random.Random(1)
    steps = {(0, attempt): chance.randint(1, 3) for attempt in range(1, 5000)}
    cursor = StreamCursor(state="r", steps=steps)
    decoded = decode(cursor.encode())
    assert decoded is not None
    assert (decoded.settled is not None and decoded.settled.before, decoded.steps) == (1, {})
    assert decoded.expand(steps) == cursor
    assert StreamCursor(settled=Settled(1, "0" * 16)).expand({}) is None


@pytest.mark.parametrize(
    "text",
    [
        "", "7", "2026-11-20T09:00:00Z", "0.0.r.0.0..", "1.0.x.0.0..", "1.0.r.0.0.4.", "1.0.r.0.0.-.", "1.0.r.0.0.x3_.",
        "1.0.r.0.0.3x9999999_.", "1.0.r.0.0.3x20001_.", "1.0.r.0.0..1-2", "1.0.r.0.0..1-2-3-4~", "1.0.r.0.0.1~ab~.",
        "1.0.r.0.0.." + "1" * MAX_CURSOR_BYTES, "1.0.r.0.0.٣.", "1.0.r.0.0..\n", "1.0.r.-1.0..",
    ],
)  # fmt: skip
def test_a_text_that_is_not_a_cursor_is_not_decoded(text: str) -> None:
    assert decode(text) is None


@given(st.text())
def test_no_text_crashes_the_decoder(text: str) -> None:
    for candidate in (text, f"1.0.r.0.0.{text}", f"1.0.r.0.0.{text}."):
        decoded = decode(candidate)
        assert decoded is None or decode(decoded.encode()) == decoded


def test_earlier_partials_of_a_run_count_as_shown() -> None:
    cursor = StreamCursor().with_partial(PartialMark(0, 1, 1, 4)).with_partial(PartialMark(2, 1, 1, 0))
    assert cursor.has_partial(PartialMark(0, 1, 1, 4))
    assert cursor.has_partial(PartialMark(0, 1, 1, 3))
    assert not cursor.has_partial(PartialMark(0, 1, 2, 0))
    assert not cursor.has_partial(PartialMark(1, 1, 1, 0))
    assert not cursor.has_partial(PartialMark(2, 1, 1, 1))
    assert not cursor.with_partial(PartialMark(0, 1, 2, 0)).has_partial(PartialMark(0, 1, 1, 5))
    for position in range(3, 12):
        cursor = cursor.with_partial(PartialMark(position, 1, 1, 0))
    assert [mark.position for mark in cursor.partials] == [*range(2, 12)]
    assert cursor.has_partial(PartialMark(0, 9, 9, 9))
