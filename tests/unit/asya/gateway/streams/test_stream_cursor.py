"""The ids of a stream's events say what has been shown (`protocol §13`, `Last-Event-ID`)."""

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
anything_shown = st.builds(
    StreamCursor,
    generation=st.integers(0, 9999),
    state=st.sampled_from(["", "p", "r", "f", paused_state("2026-11-20T09:00:00Z")]),
    percent=st.integers(0, 100),
    run_at=st.integers(0, 2**42),
    steps=cells,
    partials=marks.map(lambda some: tuple(sorted(some))),
)


@pytest.mark.rule("13.stream.id")
@given(anything_shown)
def test_an_id_tells_exactly_what_was_shown(shown: StreamCursor) -> None:
    text = shown.encode()
    assert decode(text) == shown
    assert re.fullmatch(r"[A-Za-z0-9._~-]+", text)


@pytest.mark.parametrize("hops", [1, 25, 1000])
def test_an_ordinary_life_takes_a_few_bytes(hops: int) -> None:
    steps = {(position, 1): 3 for position in range(hops)} | {(hops, attempt): 3 for attempt in (1, 2, 3)}
    assert len(StreamCursor(state="r", percent=99, steps=steps).encode()) < 40


def test_an_irregular_loop_of_25_hops_stays_small() -> None:
    chance = random.Random(1)
    steps = {(position, attempt): chance.randint(1, 3) for position in range(75) for attempt in (1, 2)}
    assert len(StreamCursor(state="r", steps=steps).encode()) < 300


@pytest.mark.rule("13.stream.snapshot")
@settings(max_examples=15)
@given(st.integers(0, 2**31))
def test_no_id_is_too_long(seed: int) -> None:
    """The most irregular life there could be: of its beginning only a digest is told, and that holds."""
    chance = random.Random(seed)
    steps = {(position, attempt): chance.randint(1, 3) for position in range(900) for attempt in range(1, 4)}
    shown = StreamCursor(state="r", percent=80, steps=steps, partials=(PartialMark(899, 3, 1, 7),))
    text = shown.encode()
    assert len(text) <= MAX_CURSOR_BYTES
    found = decode(text)
    assert found is not None
    assert found.settled is not None
    assert found.encode() == text
    assert found.expand(steps) == shown
    # A step of a settled hop is heard of late: what exactly was shown is not known any more.
    late = dict(steps)
    late[0, 4] = 1
    assert found.expand(late) is None
    # One of the others is simply new.
    late = {**steps, (899, 4): 1}
    assert found.expand(late) == shown


def test_one_hop_of_countless_attempts_is_settled_too() -> None:
    chance = random.Random(1)
    steps = {(0, attempt): chance.randint(1, 3) for attempt in range(1, 5000)}
    shown = StreamCursor(state="r", steps=steps)
    found = decode(shown.encode())
    assert found is not None
    assert (found.settled is not None and found.settled.before, found.steps) == (1, {})
    assert found.expand(steps) == shown
    assert StreamCursor(settled=Settled(1, "0" * 16)).expand({}) is None


@pytest.mark.parametrize(
    "text",
    [
        "", "7", "2026-11-20T09:00:00Z", "0.0.r.0.0..", "1.0.x.0.0..", "1.0.r.0.0.4.", "1.0.r.0.0.-.", "1.0.r.0.0.x3_.",
        "1.0.r.0.0.3x9999999_.", "1.0.r.0.0.3x20001_.", "1.0.r.0.0..1-2", "1.0.r.0.0..1-2-3-4~", "1.0.r.0.0.1~ab~.",
        "1.0.r.0.0.." + "1" * MAX_CURSOR_BYTES, "1.0.r.0.0.٣.", "1.0.r.0.0..\n", "1.0.r.-1.0..",
    ],
)  # fmt: skip
def test_what_is_no_id_of_ours_is_not_guessed_at(text: str) -> None:
    assert decode(text) is None


@given(st.text())
def test_nothing_crashes_it(text: str) -> None:
    for tried in (text, f"1.0.r.0.0.{text}", f"1.0.r.0.0.{text}."):
        found = decode(tried)
        assert found is None or decode(found.encode()) == found


def test_of_a_hop_nothing_is_shown_behind_what_came_later() -> None:
    shown = StreamCursor().with_partial(PartialMark(0, 1, 1, 4)).with_partial(PartialMark(2, 1, 1, 0))
    assert shown.has_partial(PartialMark(0, 1, 1, 4))
    assert shown.has_partial(PartialMark(0, 1, 1, 3))
    assert not shown.has_partial(PartialMark(0, 1, 2, 0))
    assert not shown.has_partial(PartialMark(1, 1, 1, 0))
    assert not shown.has_partial(PartialMark(2, 1, 1, 1))
    for position in (3, 4, 5):
        shown = shown.with_partial(PartialMark(position, 1, 1, 0))
    assert [mark.position for mark in shown.partials] == [2, 3, 4, 5]
    assert shown.has_partial(PartialMark(0, 9, 9, 9))
