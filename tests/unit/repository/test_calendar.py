"""The script that runs tests on other days: its moments, and that it moves the clock of each process."""

import ast
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.calendar.__main__ import READERS, environment_at
from tests.calendar.moments import LEAD, MOMENTS, ZONES
from tests.calendar.plan import FIRST_CELL, LEFT_OUT, MOMENT_CELLS, READERS_OF_THE_ZONE, SAMPLE, asking, zoned
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


@pytest.mark.slow
def test_who_asks_for_the_time_is_noted_also_in_children_and_libraries_are_not(tmp_path: Path) -> None:
    tests = {
        "test_a.py": "from datetime import datetime, UTC\ndef test(): assert datetime.now(UTC)",
        "test_b.py": "import subprocess, sys\ndef test(): subprocess.run([sys.executable, '-c', 'import time; time.time()'])",
        "test_c.py": "import time\nNOW = time.time_ns()\ndef test(): pass",
        "test_d.py": "import logging\ndef test(): logging.getLogger().warning('a library looks at the clock')",
        "test_e.py": "import time, time_machine\n@time_machine.travel(0)\ndef test(): assert time.time() < 60",
    }
    for name, code in tests.items():
        (tmp_path / name).write_text(code)
    noted, now = tmp_path / "noted.txt", datetime.now(UTC)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    environment = own | environment_at(now + timedelta(days=400), "Asia/Kolkata", now) | {READERS: str(noted)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert {Path(line).name for line in noted.read_text().splitlines()} == {"test_a.py", "test_b.py", "test_c.py"}


def test_what_asked_runs_again_with_the_page(tmp_path: Path) -> None:
    noted = tmp_path / "asking.txt"
    noted.write_text("tests/unit/a/test_a.py\ntests/console/test_x.py\ntests/unit/a/test_a.py\n<string>\n")
    assert asking(noted) == ("tests/console", "tests/unit/a/test_a.py")


def test_the_plan_names_what_exists() -> None:
    named = [*SAMPLE, *LEFT_OUT, *zoned()]
    assert [each for each in named if not (PROJECT / each.partition("::")[0]).exists()] == []
    assert {moment for moment, _ in (FIRST_CELL, *MOMENT_CELLS)} == set(MOMENTS)
    assert {zone for _, zone in MOMENT_CELLS} == set(ZONES)
    for test, reason in LEFT_OUT.items():
        file, _, name = test.partition("::")
        assert not name or f"def {name.partition('[')[0]}(" in (PROJECT / file).read_text(), test
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


@pytest.mark.slow
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
