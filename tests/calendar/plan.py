"""Which tests run on other days, and what is left out."""

from __future__ import annotations

import re
from functools import cache

from tests.paths import PROJECT

SUITES = ("tests/unit", "tests/console", "tests/infra")
"""All of them run in the cells below, and beside them the tests of the page, `console/test`."""

WHOLE_CELLS = frozenset({
    ("+1d", "America/Los_Angeles"),
    ("+45d", "Asia/Kolkata"),
    ("+400d", "Pacific/Kiritimati"),
    ("leap-day", "Pacific/Kiritimati"),
    ("spring", "Europe/Oslo"),
    ("autumn", "America/Los_Angeles"),
    ("new-year", "Europe/Oslo"),
})  # fmt: skip
"""Each moment once, and each zone. In the other cells the tests run that have to do with time."""

_TIMED = re.compile(
    r"\bdatetime\b|\bclock|ZoneInfo|format_time|parse_time|time\.time|StubGateway|KitCloud|\btravel\(|snapshots"
)

SAMPLE_CELL = ("+400d", "Pacific/Kiritimati")
SAMPLE = (
    "tests/unit/asya/protocol/test_times.py",
    "tests/unit/asya/gateway/lambdas/test_report_queues.py",
    "tests/unit/asya/gateway/lambdas/test_deadline_sweep.py",
    "tests/unit/asya/triggers/test_slots.py",
    "tests/unit/asya/triggers/test_due_slots.py",
    "tests/unit/asya/wait/test_due_times.py",
    "tests/unit/asya_cli/job/test_listing.py",
    "tests/unit/asya_cli/tasks/test_selection.py",
    "tests/unit/asya_cli/tasks/test_listing.py",
    "tests/unit/asya_cli/triggers/test_command.py",
    "tests/unit/asya_cli/output/test_events.py",
    "tests/unit/asya_cli/dlq/test_command.py",
    "tests/console/test_runs_page.py::test_runs_are_listed_with_their_cost_and_what_waits",
)
"""What `make test` runs, beside the tests of the page: tests that show times and ages, and that compute them."""

LEFT_OUT = {
    "tests/unit/repository/test_calendar.py::"
    "test_the_clock_of_a_process_and_of_its_children_is_moved_and_the_monotonic_one_is_not": (
        "it moves the clock itself, from that of the machine"
    ),
}
"""Tests that do not run on other days, with the reason: a file or the id of a test."""


@cache
def timed() -> tuple[str, ...]:
    """Return the files of tests that read times, write them or set a clock."""
    return tuple(
        path.relative_to(PROJECT).as_posix()
        for suite in SUITES
        for path in sorted((PROJECT / suite).rglob("test_*.py"))
        if _TIMED.search(path.read_text(encoding="utf-8"))
    )
