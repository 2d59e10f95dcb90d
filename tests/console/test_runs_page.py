"""The page of job runs and of one run: what waits, runs and ran, why it died, who is charged, and what was logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.console.sample_operations import (
    MESH,
    OPERATIONS,
    RUN,
    fill_operations,
    member,
    mesh_numbers,
    run_details,
    run_line,
    run_page,
    usage,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.console.browser import OpenedPage
    from tests.console.stub_gateway import StubGateway

RUNS = f"{OPERATIONS}/runs"


@pytest.fixture(autouse=True)
def mesh(gateway: StubGateway) -> None:
    fill_operations(gateway)


def cells(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True)).get_by_role("cell")


def test_runs_are_listed_with_their_cost_and_what_waits(opened: OpenedPage) -> None:
    page = opened.open("#/runs")
    now = page.get_by_role("region", name="Now")
    expect(now).to_contain_text("forecast: 240 waiting for a run, 1 running, 1 lingering")
    expect(page.get_by_role("rowheader")).to_have_count(3)
    shown = cells(page, RUN)
    for place, text in enumerate(
        ("✕ partly failed", "forecast", "97 succeeded, 1 failed, 2 again", "13:00:03", "0.84", "$0.051")
    ):
        expect(shown.nth(place)).to_have_text(text)
    expect(page.get_by_text("list price of ARM64")).to_be_visible()


def test_new_runs_and_their_ends_appear_by_themselves(gateway: StubGateway, opened: OpenedPage) -> None:
    page = opened.open("#/runs")
    expect(page.get_by_role("rowheader")).to_have_count(3)
    old = gateway.answers[RUNS]["items"]
    first = run_line(5, "succeeded", usage=usage(), dollars=1.5)
    gateway.answers[RUNS] = run_page(run_line(6, "running", is_open=True), first, *old[1:])
    expect(page.get_by_role("rowheader")).to_have_count(4)
    expect(cells(page, first["run_id"]).last).to_have_text("$1.50")
    numbers = mesh_numbers()
    forecast = next(each for each in numbers["actors"] if each["name"] == "forecast")
    forecast["runs"].update(pending=0, is_drained=True)
    gateway.answers[MESH] = numbers
    expect(page.get_by_role("region", name="Now")).to_contain_text("0 waiting for a run")
    expect(page.get_by_role("region", name="Now")).to_contain_text("new runs are stopped")


def test_the_runs_of_one_actor_have_an_address(opened: OpenedPage) -> None:
    page = opened.open("#/runs")
    page.get_by_label("Actor").select_option("forecast")
    assert page.url.endswith("#/runs?actor=forecast")
    page.reload()
    expect(page.get_by_label("Actor")).to_have_value("forecast")


def test_older_runs_are_read_on_demand_and_each_run_is_listed_once(gateway: StubGateway, opened: OpenedPage) -> None:
    first = gateway.answers[RUNS]
    gateway.answers[RUNS] = {**first, "next_cursor": "older"}
    # Run 3 has ended between the two pages.
    older = run_page(*(run_line(number, "succeeded") for number in (3, 2, 1)))
    gateway.answers[f"{RUNS}?cursor=older"] = older
    page = opened.open("#/runs")
    expect(page.get_by_role("rowheader")).to_have_count(3)
    page.get_by_role("button", name="Older runs").click()
    expect(page.get_by_role("rowheader")).to_have_count(5)
    expect(page.get_by_role("rowheader").last).to_contain_text("0000000001")
    expect(cells(page, RUN).first).to_have_text("✕ partly failed")
    expect(page.get_by_role("button", name="Older runs")).to_have_count(0)
    # A run that has ended since is read again on its page, and both pages stay.
    gateway.answers[f"{RUNS}?cursor=older"] = run_page(*older["items"][:2], run_line(1, "failed"))
    expect(cells(page, "asya.shop.forecast.0000000001").first).to_have_text("✕ failed")
    expect(page.get_by_role("rowheader")).to_have_count(5)


def test_a_run_tells_why_it_died_and_who_is_charged(opened: OpenedPage) -> None:
    page = opened.open("#/runs")
    page.get_by_role("link", name=RUN, exact=True).click()
    verdict = page.get_by_role("region", name="Why it ended, and who is charged")
    expect(verdict).to_contain_text("region-0 was the first and only envelope at work, so it is charged")
    expect(verdict).to_contain_text("driver killed by signal 9")
    facts = page.locator("dl.facts")
    for text in (
        "State✕ partly failed",
        "Envelopes97 succeeded, 1 failed, 2 again",
        "EMR stateFAILED",
        "vCPU-hours0.84",
        "GB-hours of memory3.36",
        "Cost$0.051",
        "Executors2",
    ):
        expect(facts).to_contain_text(text)


def test_a_run_tells_its_size_its_spill_and_its_skew(gateway: StubGateway, opened: OpenedPage) -> None:
    skew = {"stage": 4, "name": "sum by country", "tasks": 200, "median_ms": 300.0, "longest_ms": 9000.0}
    work = {"stages": 2, "tasks": 208, "shuffle_read": 2048, "spilled_memory": 4096, "spilled_disk": 1024, "skew": skew}
    gateway.answers[f"{RUNS}/{RUN}"] = run_details(size="small", work=work)
    page = opened.open(f"#/runs/{RUN}")
    facts = page.locator("dl.facts")
    for text in ("Sizesmall", "Shuffle2 KiB read, 0 B written", "Spilled4 KiB, 1 KiB on disk"):
        expect(facts).to_contain_text(text)
    expect(
        page.get_by_text("Skew in sum by country: the longest of 200 tasks took 9.0 s, the median 300 ms.")
    ).to_be_visible()


def test_envelopes_are_grouped_by_outcome_and_lead_to_their_tasks(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("region-0", "failed")
    page = opened.open(f"#/runs/{RUN}")
    groups = page.locator("summary")
    expect(groups).to_have_text(["charged: 1 envelope", "succeeded: 97 envelopes", "runs again: 2 envelopes"])
    expect(page.get_by_role("rowheader")).to_have_count(3)  # the many that went well are folded
    groups.nth(1).click()
    expect(page.get_by_role("rowheader")).to_have_count(100)
    shown = cells(page, "region-0")
    expect(shown.last).to_have_text("ValueError: no rows in region 1")
    page.get_by_role("link", name="region-0", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("region-0")


def test_more_envelopes_of_a_large_run_are_read_on_demand(gateway: StubGateway, opened: OpenedPage) -> None:
    first = [member(number, "succeeded") for number in range(2)]
    gateway.answers[f"{RUNS}/{RUN}"] = run_details(envelopes=4, members=first, next_cursor="more")
    more = [member(2, "succeeded"), member(3, "charged", error="ValueError: no rows")]
    gateway.answers[f"{RUNS}/{RUN}?cursor=more"] = run_details(envelopes=4, members=more)
    page = opened.open(f"#/runs/{RUN}")
    expect(page.get_by_text("The first 2 of 4 envelopes.")).to_be_visible()
    page.get_by_role("button", name="More envelopes").click()
    expect(page.locator("summary")).to_have_text(["charged: 1 envelope", "succeeded: 3 envelopes"])
    expect(page.get_by_role("rowheader")).to_have_count(4)
    expect(page.get_by_text("The first 2 of 4 envelopes.")).to_have_count(0)
    expect(page.get_by_role("button", name="More envelopes")).to_have_count(0)


def test_a_run_that_runs_shows_its_stages_live(gateway: StubGateway, opened: OpenedPage) -> None:
    stage = {
        "stage": 4,
        "name": "sum by country",
        "tasks": 200,
        "done": 20,
        "rows_read": 12000,
        "progress_at": "2026-11-25T11:53:00Z",
    }
    beat = {"at": "2026-11-25T12:01:00Z", "beat": 1, "done": 0, "stages": [stage], "executors": 3}
    open_run = run_details(
        state="running",
        emr_state="RUNNING",
        outcomes=None,
        mesh_state="started",
        verdict="",
        details="",
        heartbeat=beat,
        usage=None,
    )
    open_run["members"] = [member(0, "at work", usage=None, dollars=None)]
    gateway.answers[f"{RUNS}/{RUN}"] = open_run
    page = opened.open(f"#/runs/{RUN}")
    stages = page.get_by_role("region", name="Spark stages")
    expect(stages).to_contain_text("sum by country: 20 of 200")
    expect(stages).to_contain_text("12,000 rows read")
    expect(stages).to_contain_text("no task has ended for 8 min")
    later = {**beat, "stages": [{**stage, "done": 180}]}
    gateway.answers[f"{RUNS}/{RUN}"] = {**open_run, "heartbeat": later}
    expect(stages).to_contain_text("180 of 200")
    gateway.answers[f"{RUNS}/{RUN}"] = run_details(
        state="partly failed",
        emr_state="SUCCESS",
        outcomes={"succeeded": 99, "failed": 1},
        verdict="every envelope has a result (99 succeeded, 1 failed)",
        details="",
    )
    expect(page.get_by_text("every envelope has a result (99 succeeded, 1 failed)")).to_be_visible()


def test_lines_of_the_driver_and_of_the_executors_are_chosen_in_the_address(opened: OpenedPage) -> None:
    page = opened.open(f"#/runs/{RUN}")
    page.get_by_role("tab", name="Logs").click()
    lines = page.get_by_role("list", name="Lines").get_by_role("listitem")
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text("driver stderr java.lang.OutOfMemoryError: Java heap space")
    page.get_by_label("Lines of").select_option("the driver")
    assert page.url.endswith(f"#/runs/{RUN}?show=logs&source=driver")


def test_a_run_that_nobody_knows_is_told(opened: OpenedPage) -> None:
    expect(opened.open("#/runs/none").get_by_role("alert")).to_be_visible()


def test_a_mesh_without_runs_says_so(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.answers[RUNS] = run_page()
    expect(opened.open("#/runs").get_by_text("No job run is known.")).to_be_visible()
