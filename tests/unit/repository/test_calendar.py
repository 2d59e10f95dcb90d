"""The script that runs tests on other days: its moments, and that it moves the clock of each process."""

import ast
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.calendar.__main__ import environment_at
from tests.calendar.moments import LEAD, MOMENTS, ZONES
from tests.calendar.plan import LEFT_OUT, READERS_OF_THE_ZONE, SAMPLE, SAMPLE_CELL, WHOLE_CELLS, zoned
from tests.paths import PROJECT

NOW = datetime(2026, 11, 27, 20, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "zone", "local"),
    [
        ("+1d", "Asia/Kolkata", "2026-11-29 02:00:00"),
        ("+400d", "Pacific/Kiritimati", "2028-01-02 10:30:00"),
        ("leap-day", "America/Los_Angeles", "2028-02-29 12:00:00"),
        ("spring", "Europe/Oslo", "2027-03-28 01:58:30"),
        ("spring", "America/Los_Angeles", "2027-03-14 01:58:30"),
        ("autumn", "Europe/Oslo", "2027-10-31 02:58:30"),
        ("autumn", "Asia/Kolkata", "2027-10-31 06:28:30"),
        ("new-year", "Pacific/Kiritimati", "2026-12-31 23:58:30"),
    ],
)
def test_moments_are_those_of_the_zone(moment: str, zone: str, local: str) -> None:
    at = MOMENTS[moment].at(NOW, ZoneInfo(zone))
    assert f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S}" == local


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.slow
def test_every_moment_is_ahead_in_each_of_four_years(zone: str) -> None:
    for day in range(0, 4 * 366, 183):
        now = NOW + timedelta(days=day)
        assert all(each.at(now, ZoneInfo(zone)) > now - LEAD for each in MOMENTS.values()), now


@pytest.mark.slow
def test_the_clock_of_a_process_and_of_its_children_is_moved_and_the_monotonic_one_is_not() -> None:
    real, moment = datetime.now(UTC), datetime(2028, 2, 29, 12, tzinfo=UTC)
    code = (
        "import datetime, os, subprocess, sys, time; print(datetime.datetime.now().astimezone().isoformat(), time.monotonic());"
        "len(sys.argv) > 1 and sys.stdout.flush() is None and subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, code],
        env=os.environ | environment_at(moment, "Asia/Kolkata", real),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 2
    for shown, monotonic in lines:
        assert shown.startswith("2028-02-29T17:3")
        assert shown.endswith("+05:30")
        assert float(monotonic) < 365 * 86_400


def test_the_plan_names_what_exists() -> None:
    named = [*SAMPLE, *LEFT_OUT, *zoned()]
    assert [each for each in named if not (PROJECT / each.partition("::")[0]).exists()] == []
    assert {moment for moment, _ in WHOLE_CELLS} == set(MOMENTS)
    assert {zone for _, zone in WHOLE_CELLS} == set(ZONES)
    assert SAMPLE_CELL in WHOLE_CELLS
    for test, reason in LEFT_OUT.items():
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (PROJECT / file).read_text() or not name, test
        assert reason


def _asks_for_the_zone(call: ast.Call) -> bool:
    """Whether a call reads the zone of the machine, among those that the linter lets through."""
    match call.func:
        case ast.Attribute(attr="astimezone"):
            return not call.args
        case ast.Attribute(value=ast.Name(id="time"), attr="localtime" | "strftime" | "mktime" | "ctime" | "asctime"):
            return True
        case _:
            return False


def test_only_what_people_read_has_the_zone_of_the_machine() -> None:
    """Beside these, a zone cannot change a verdict: it is enough that their tests run in each."""
    asking = {
        path.relative_to(PROJECT).as_posix()
        for folder in ("functions", "infra", "asya_cli", "spark_jobs", "docs_site")
        for path in (PROJECT / folder).rglob("*.py")
        if any(
            _asks_for_the_zone(node) for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call)
        )
    }
    assert asking == set(READERS_OF_THE_ZONE)
