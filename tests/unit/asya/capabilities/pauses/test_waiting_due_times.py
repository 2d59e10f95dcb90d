"""protocol §11: when an envelope at a wait actor is due."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya.capabilities.pauses.waiting import DueTimeError, due_time, too_long
from asya.protocol.wait import Wait
from tests.doubles.envelopes import raw

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PUBLISH = Wait(until="/publish_at")


@pytest.mark.rule("11.wait.due")
def test_a_duration_counts_from_the_arrival() -> None:
    assert due_time(Wait(seconds=90.0), raw({}), now=NOW) == NOW + timedelta(seconds=90)
    assert due_time(Wait(seconds=0.0), raw(None), now=NOW) == NOW


@pytest.mark.rule("11.wait.due")
@pytest.mark.parametrize(
    ("pointer", "payload", "due"),
    [
        ("/publish_at", {"publish_at": "2026-12-24T18:00:00+01:00"}, datetime(2026, 12, 24, 17, tzinfo=UTC)),
        ("/publish_at", {"publish_at": 1_798_135_200}, datetime(2026, 12, 24, 18, tzinfo=UTC)),
        ("/publish_at", {"publish_at": 1_798_135_200.5}, datetime(2026, 12, 24, 18, 0, 0, 500_000, tzinfo=UTC)),
        ("/a~1b/1/at", {"a/b": [{}, {"at": 0}]}, datetime(1970, 1, 1, tzinfo=UTC)),
        ("", "2026-12-24T18:00:00Z", datetime(2026, 12, 24, 18, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_at_the_pointer(pointer: str, payload: object, due: datetime) -> None:
    assert due_time(Wait(until=pointer), raw(payload), now=NOW) == due


@pytest.mark.rule("11.wait.value")
@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({}, "no value at '/publish_at'; put a time such as \"2026-12-24T18:00:00Z\" or epoch seconds"),
        ([1], "no value at '/publish_at'"),
        ("text", "no value at '/publish_at'"),
        ({"publish_at": None}, "has null at '/publish_at'; put a time"),
        ({"publish_at": True}, "has true at"),
        ({"publish_at": "24.12.2026"}, 'has "24.12.2026" at'),
        ({"publish_at": "2026-12-24T18:00:00"}, "put a time"),
        ({"publish_at": 1_798_135_200_000}, "its year must be from 1970 to 2199, and epochs are in seconds"),
        ({"publish_at": -1}, "its year must be"),
        ({"publish_at": 1e300}, "its year must be"),
        ({"publish_at": "0001-01-01T00:00:00Z"}, "its year must be"),
        ({"publish_at": {"at": "x" * 500}}, "…"),
    ],
)
def test_another_value_is_an_error_for_people(payload: object, problem: str) -> None:
    with pytest.raises(DueTimeError) as caught:
        due_time(PUBLISH, raw(payload), now=NOW)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 300


@settings(max_examples=60)
@given(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=40)
)
def test_no_value_raises_another_error(value: object) -> None:
    try:
        due = due_time(PUBLISH, raw({"publish_at": value}), now=NOW)
    except DueTimeError:
        return
    assert due.tzinfo is UTC


@pytest.mark.rule("11.wait.longest")
def test_a_wait_may_be_as_long_as_the_mesh_keeps_it() -> None:
    longest = timedelta(days=29)
    assert too_long(NOW + longest, now=NOW, longest=longest) is None
    problem = too_long(NOW + longest + timedelta(seconds=1), now=NOW, longest=longest)
    assert problem is not None
    assert "696h0m0s at most (retention.tasks and retention.payloads)" in problem
