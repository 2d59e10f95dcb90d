"""Which tests run on other days, and what is left out."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from tests.paths import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING = ("tests",)
"""All that `make test` runs, without what is left out below."""

SUITES = ("tests/unit", "tests/console", "tests/infra")
"""What may run at each moment, beside the tests of the page, `console/test`."""

FIRST_CELL = ("+400d", "Pacific/Kiritimati")
"""Everything runs here first. The suites' tests that ask for the time are noted, and run at each other moment too."""

MOMENT_CELLS = frozenset({
    ("+1d", "America/Los_Angeles"),
    ("+45d", "Asia/Kolkata"),
    ("leap-day", "Pacific/Kiritimati"),
    ("spring", "Europe/Oslo"),
    ("autumn", "America/Los_Angeles"),
    ("new-year", "Europe/Oslo"),
})  # fmt: skip
"""Each other moment once, and each zone. In the rest of the cells the tests run to which the zone of the machine may matter."""

READERS_OF_THE_ZONE = ("asya_cli/output/console.py",)
"""The modules that ask for the zone of the machine; for the page of the console, the browser does. The linter refuses times without
a zone, so all others have UTC or the zone of their data. A test looks for further ones."""

_SHOW_THE_ZONE = (
    "tests/unit/asya/protocol/test_times.py",
    "tests/unit/asya/capabilities/triggers",
    "tests/unit/asya_cli/backfill",
    "tests/unit/asya_cli/output",
    "tests/unit/asya_cli/tasks",
    "tests/unit/asya_cli/triggers",
    "tests/console/test_runs_page.py",
    "tests/console/test_task_page.py",
    "tests/console/test_tasks_page.py",
)
_NAMES_A_ZONE = re.compile(r"ZoneInfo|astimezone\(|snapshots")

SAMPLE = (
    "tests/unit/asya/protocol/test_times.py",
    "tests/unit/asya/gateway/lambdas/test_report_queues.py",
    "tests/unit/asya/gateway/lambdas/test_task_sweeps_deadline_sweep.py",
    "tests/unit/asya/capabilities/triggers/test_slots.py",
    "tests/unit/asya/capabilities/triggers/test_slots_due_slots.py",
    "tests/unit/asya/capabilities/pauses/test_waiting_due_times.py",
    "tests/unit/asya_cli/job/test_listing.py",
    "tests/unit/asya_cli/tasks/test_selection.py",
    "tests/unit/asya_cli/tasks/test_listing.py",
    "tests/unit/asya_cli/triggers/test_command.py",
    "tests/unit/asya_cli/output/test_console_events.py",
    "tests/unit/asya_cli/dlq/test_command.py",
    "tests/console/test_runs_page.py::test_runs_are_listed_with_their_cost_and_what_waits",
)
"""What `make test` runs, beside the tests of the page: tests that show times and ages, and that compute them."""

LEFT_OUT = {
    "tests/unit/repository/test_calendar.py::"
    "test_the_clock_of_a_process_and_of_its_children_is_moved_and_the_monotonic_one_is_not": (
        "it moves the clock itself, from that of the machine"
    ),
    "tests/cloud": (
        "the local cloud starts functions, servers and the JVM of job runs as AWS does, with variables of their own. So they have "
        "the clock of the machine, and refuse signatures of another day"
    ),
    "tests/spark/test_asya_spark.py::test_10_a_heartbeat_lists_stages_and_rows": (
        "it compares the clock of Python with that of the JVM, which is the machine's"
    ),
}
"""What does not run on other days, with the reason: a folder, a file or the id of a test."""


def asking(noted: Path) -> tuple[str, ...]:
    """Return the tests that asked for the time, from the notes of the first cell, and those of the page in the browser."""
    tests = {line for line in noted.read_text(encoding="utf-8").splitlines() if line.startswith(SUITES)}
    return ("tests/console", *sorted(test for test in tests if not test.startswith("tests/console")))


@cache
def zoned() -> tuple[str, ...]:
    """Return the tests whose times are shown in the zone of the machine, or computed in any zone."""
    naming = (
        path.relative_to(PROJECT).as_posix()
        for suite in SUITES
        for path in sorted((PROJECT / suite).rglob("test_*.py"))
        if _NAMES_A_ZONE.search(path.read_text(encoding="utf-8"))
    )
    return (*_SHOW_THE_ZONE, *(name for name in naming if not name.startswith(_SHOW_THE_ZONE)))
