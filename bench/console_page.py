"""The console with 10,000 tasks in a headless Chromium: first rows, a new task, a scroll through all rows, and long tasks.

`python -m bench.console_page [ROUNDS]`, by default 5. The gateway is in memory: the figures are those of the page and its server.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playwright.sync_api import expect
from rich.console import Console
from rich.table import Table

from tests.console.browser import OpenedPage, running_browser, running_console
from tests.console.stub_gateway import StubGateway

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TASKS = 10_000
JUMPS = 100
_OBSERVE = """
window.longTasks = [];
new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((entry) => entry.duration)))
  .observe({ type: "longtask", buffered: true });
"""
_JUMP = """async (element, [number, jumps]) => {
  element.scrollTop = element.scrollHeight * number / jumps;
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  return document.querySelectorAll("tr.task").length;
}"""


@dataclass(frozen=True)
class Round:
    """One opened page; seconds, rows in the document, and milliseconds.

    Attributes:
        first_rows: from the address to the first row.
        new_task: from a start to its row.
        load_all: from the click to the last of all tasks.
        rows: the most rows in the document during a scroll through all.
        opening, scrolling: the tasks over 50 ms of the page's thread while it opens and loads, and while it scrolls.
    """

    first_rows: float
    new_task: float
    load_all: float
    rows: int
    opening: list[float]
    scrolling: list[float]


def main(rounds: int) -> None:
    """Measure, and print medians; of long tasks their number and the longest of all rounds."""
    with running_browser() as browser:
        found = [_round(browser) for _ in range(rounds)]
    table = Table(title=f"{TASKS:,} tasks, {rounds} rounds", title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    table.add_column("", justify="right")
    for name, values in (
        ("first rows", [each.first_rows for each in found]),
        ("a new task", [each.new_task for each in found]),
        (f"load all {TASKS:,}", [each.load_all for each in found]),
    ):
        table.add_row(name, f"{statistics.median(values):.2f} s")
    table.add_row("rows in the document, at most", str(max(each.rows for each in found)))
    for name, tasks in (
        ("long tasks while it opens and loads", [one for each in found for one in each.opening]),
        (f"long tasks in {JUMPS} jumps through all rows", [one for each in found for one in each.scrolling]),
    ):
        longest = f", the longest {max(tasks):.0f} ms" if tasks else ""
        table.add_row(name, f"{len(tasks) / rounds:.1f} a round{longest}")
    Console().print(table)


def _round(browser: Browser) -> Round:
    gateway = StubGateway()
    for number in range(TASKS - 1):  # and the new one
        gateway.add(f"order-{number}")
    with running_console(gateway) as address:
        opened = OpenedPage.of(browser, address)
        page = opened.page
        page.add_init_script(_OBSERVE)
        began = time.perf_counter()
        opened.open()
        page.locator("tr.task").first.wait_for()
        first_rows = time.perf_counter() - began
        began = time.perf_counter()
        gateway.add("order-new")
        page.get_by_role("link", name="order-new", exact=True).wait_for()
        new_task = time.perf_counter() - began
        began = time.perf_counter()
        page.get_by_role("button", name="Load all").click()
        expect(page.get_by_role("status").filter(has_text=f"{TASKS:,} tasks")).to_be_visible()
        load_all = time.perf_counter() - began
        opening = page.evaluate("longTasks.splice(0)")
        scroller = page.get_by_role("region", name="Tasks, newest first")
        rows = [scroller.evaluate(_JUMP, [number, JUMPS]) for number in range(JUMPS + 1)]
        scrolling = page.evaluate("longTasks.splice(0)")
        opened.close()
    return Round(first_rows, new_task, load_all, max(rows), opening, scrolling)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
