"""Tests that the page has each event, log entry and line of a driver."""

import re

import pytest

from asya.protocol.events import EventData, TaskEvent
from asya.tasks.listing import TimelineEntry
from docs_site.reference.events import driver_lines, log_entries, page
from docs_site.reference.source import ROOT


@pytest.fixture(scope="module")
def events_page() -> str:
    """The page, which takes a second to write."""
    return page()


@pytest.mark.parametrize("kind", [TaskEvent, EventData, TimelineEntry])
def test_each_field_of_an_event_has_a_row(kind: type, events_page: str) -> None:
    section = events_page.partition(f"\n### {kind.__name__}\n")[2].partition("\n### ")[0]
    assert [name for name in kind.__struct_fields__ if f"\n| `{name}` |" not in section] == []


def test_each_call_that_logs_is_listed() -> None:
    sources = {entry.source for entry in log_entries()}
    logging = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "functions" / "asya").rglob("*.py")
        if "testing" not in path.parts
        and re.search(r"\b_?log\.(info|warning|error|exception)\(", path.read_text(encoding="utf-8"))
    }
    assert sources == logging


def test_the_message_that_a_function_gets_from_its_callers_is_listed() -> None:
    messages = {entry.message for entry in log_entries()}
    assert {"not paused", "not resumed", "no checkpoint made"} <= messages


def test_each_entry_has_a_row(events_page: str) -> None:
    rows = [f"\n| `{entry.message}` | {entry.level} |" for entry in log_entries()]
    assert [row for row in rows if row not in events_page] == []


def test_each_line_of_a_driver_is_listed() -> None:
    assert len(driver_lines()) >= 5
    assert all(line.source.startswith("spark_jobs/") for line in driver_lines())
