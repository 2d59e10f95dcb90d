"""Slots in the zone of their schedule."""

import pytest

from asya_cli.triggers.tables import local_time


@pytest.mark.parametrize(
    ("at", "zone", "shown"),
    [
        ("2026-11-25T01:00:00.000000Z", "Europe/Oslo", "2026-11-25 02:00 +01"),
        ("2026-07-01T00:00:00.000000Z", "Europe/Oslo", "2026-07-01 02:00 +02"),
        ("2026-07-01T00:00:00.000000Z", "Asia/Kolkata", "2026-07-01 05:30 +0530"),
        ("2026-07-01T00:00:00.000000Z", None, "2026-07-01 00:00 +00"),
    ],
)
def test_a_time_has_its_offset(at: str, zone: str | None, shown: str) -> None:
    assert local_time(at, zone) == shown
