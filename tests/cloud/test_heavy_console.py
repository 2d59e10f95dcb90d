"""Job runs in the console, on the mesh of heavy actors: a run ends before the reader's eyes, with its cost and lines."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.console.browser import OpenedPage, running_browser
from tests.console.process import running_ui

if TYPE_CHECKING:
    from tests.cloud.heavy_cloud import HeavyCloud

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.skipif(
        not os.environ.get("ASYA_FULL_SIZE"),
        reason="takes a job run (make test-full); tests/console has the page of a run",
    ),
]

ASYA = Path(sys.executable).parent / "asya"
RUN_MILLISECONDS = 300_000
"""How long the first job run may take: Spark starts slowly on a busy machine."""


def test_a_run_shows_its_envelopes_verdict_cost_and_lines(heavy: HeavyCloud) -> None:
    with running_ui(ASYA, heavy.cloud.state, os.environ) as address, running_browser() as browser:
        opened = OpenedPage.of(browser, address, clock=None)
        page = opened.open("#/runs")
        ended = page.get_by_role("row").filter(has=page.get_by_text("SUCCESS", exact=False))
        expect(ended.first).to_be_visible(timeout=RUN_MILLISECONDS)
        expect(ended.first.get_by_role("cell").last).to_contain_text("$")
        ended.first.get_by_role("rowheader").get_by_role("link").click()
        expect(page.get_by_role("region", name="Why it ended, and who is charged")).to_be_visible()
        expect(page.locator("dl.facts")).to_contain_text("vCPU-hours")
        expect(page.get_by_role("tabpanel").locator("summary").first).to_contain_text("envelope")
        page.get_by_role("tab", name="Logs").click()
        expect(page.get_by_role("list", name="Lines").get_by_role("listitem").first).to_be_visible()
        assert opened.problems() == []
