"""The page of the mesh and of an actor: numbers that are live, dead letters, settings and lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.console.sample_operations import (
    MESH,
    OPERATIONS,
    actor_details,
    dead_letter,
    fill_operations,
    letter_page,
    mesh_numbers,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.console.browser import OpenedPage
    from tests.console.stub_gateway import StubGateway

LETTERS = f"{OPERATIONS}/dead-letters"


@pytest.fixture(autouse=True)
def mesh(gateway: StubGateway) -> None:
    fill_operations(gateway)


def graph(page: Page) -> Locator:
    return page.get_by_role("group", name="Graph of the mesh")


def row(page: Page, actor: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=actor, exact=True))


def test_the_graph_has_actors_and_tools_with_their_numbers(opened: OpenedPage) -> None:
    page = opened.open("#/mesh")
    node = graph(page).get_by_role("link", name="check-order")
    expect(node).to_have_text("check-order 12 waiting · 4 at work 42.4 a minute")
    expect(graph(page).get_by_role("link")).to_have_count(10)
    expect(graph(page).locator(".tool")).to_have_text(["order", "forecast"])
    expect(graph(page).locator("path.edge")).to_have_count(11)
    heavy = graph(page).get_by_role("link", name="forecast")
    expect(heavy).to_contain_text("1 run · 1 lingering · 240 pending")
    expect(heavy).to_contain_text("the oldest waits 12 min 34 s")


def test_numbers_change_by_themselves_and_nothing_moves(gateway: StubGateway, opened: OpenedPage) -> None:
    page = opened.open("#/mesh")
    report = graph(page).get_by_role("link", name="report")
    expect(report).to_contain_text("0 waiting")
    before = report.locator("g").get_attribute("transform")
    numbers = mesh_numbers()
    next(each for each in numbers["actors"] if each["name"] == "report").update(waiting=1240, dead_letters=7)
    gateway.answers[MESH] = numbers
    expect(report).to_contain_text("1,240 waiting")
    expect(report).to_contain_text("7 dead letters")
    expect(row(page, "report").get_by_role("cell").nth(1)).to_have_text("1,240")
    assert report.locator("g").get_attribute("transform") == before


def test_what_is_wrong_is_told_first_and_leads_to_the_cause(opened: OpenedPage) -> None:
    page = opened.open("#/mesh")
    attention = page.get_by_role("region", name="Needs attention").get_by_role("listitem")
    circuit = r"circuit open \(since .*, after ConnectionError: no answer, next call .*\)"
    told = [
        rf"price-order: {circuit}, 3 dead letters, 6.2 a minute fail",
        r"split-order: not read \(event source mapping disabled\)aws lambda update-event-source-mapping --uuid 7f3a --enabled",
        r"forecast: the oldest waits 12 min 34 s",
    ]
    expect(attention).to_have_text([re.compile(each) for each in told])
    attention.get_by_role("link", name="price-order").click()
    expect(page.get_by_role("tabpanel", name="Dead letters (3)")).to_be_visible()


def test_the_graph_of_a_tool_is_its_route(opened: OpenedPage) -> None:
    page = opened.open("#/mesh")
    page.get_by_label("Tool").select_option("order")
    assert page.url.endswith("#/mesh?tool=order")
    expect(graph(page).get_by_role("link")).to_have_count(5)
    expect(page.get_by_role("rowheader")).to_have_text(
        ["approve", "check-order", "price-order", "ship-order", "x-sink"]
    )


def test_an_actor_is_opened_by_keyboard(opened: OpenedPage) -> None:
    page = opened.open("#/mesh")
    graph(page).get_by_role("link", name="price-order").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("price-order")
    page.keyboard.press("Tab")
    page.get_by_role("tab", name="Overview").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Dead letters (3)")).to_be_focused()
    assert page.url.endswith("#/mesh/price-order?show=dead-letters")


def test_an_actor_shows_policies_access_durations_and_recent_errors(opened: OpenedPage) -> None:
    page = opened.open("#/mesh/price-order")
    panel = page.get_by_role("tabpanel", name="Overview")
    for text in (
        "3 attempts, exponential delays from 1.5 s, 1 min at most, with jitter, within 10 min",
        "1 attempt, then to report",
        "ValueError, KeyError: policy wrong",
        "The circuit opens for 2 min after 5 failures within 1 min.",
        "May send toapprove, report",
        "SecretsPRICE_SERVICE_KEY",
        "bucket data, reads prices/*, writes out/*, log/*",
        'statement: {"Action":["sns:Publish"]}',
        "Half of the calls of the last hour within84 ms",
        "Kept4 days",
        "KeyError: no such price: order 1040",
    ):
        expect(panel).to_contain_text(text)
    page.get_by_role("link", name="All tasks that failed here").click()
    assert page.url.endswith("#/tasks?status=failed&actor=price-order")


def test_numbers_that_nobody_knows_are_left_out(gateway: StubGateway, opened: OpenedPage) -> None:
    numbers = mesh_numbers()
    for each in numbers["actors"]:
        each.update(per_minute=None, failing_per_minute=None, oldest_seconds=None)
    gateway.answers[MESH] = numbers
    page = opened.open("#/mesh")
    expect(page.get_by_text("Rates and ages come from CloudWatch")).to_be_visible()
    expect(row(page, "report").get_by_role("cell").nth(4)).to_have_text("–")


def letters(page: Page) -> Locator:
    return page.get_by_role("list", name="Dead letters").locator("> li")


def test_dead_letters_have_their_bodies(opened: OpenedPage) -> None:
    page = opened.open("#/mesh/price-order?show=dead-letters")
    expect(letters(page)).to_have_count(3)
    first = letters(page).first
    expect(first).to_contain_text("KeyError: no such price: order 1041")
    expect(first).to_contain_text(
        "hop 1, its task is failed, delivered 5 times to the function, looked at 1 time since, 47 B"
    )
    first.get_by_text("Body", exact=True).click()
    expect(first.locator("pre")).to_contain_text('"article": "tea"')
    last = letters(page).last
    last.get_by_text("Body, its first 15 B").click()
    expect(last.locator("pre")).to_have_text("not an envelope")
    first.get_by_role("link", name="order-1041").click()
    expect(page.get_by_role("heading", name="order-1041")).to_be_visible()


def test_dead_letters_are_redriven_and_read_again(gateway: StubGateway, opened: OpenedPage) -> None:
    page = opened.open("#/mesh/price-order?show=dead-letters")
    page.get_by_label("Select order-1040").check()
    page.get_by_label("Select order-1041").check()
    page.get_by_role("button", name="Redrive…").click()
    assert gateway.redrives == []
    page.get_by_role("button", name="Redrive 2 tasks").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 tasks done, 0 refused")
    assert sorted(gateway.redrives) == ["order-1040", "order-1041"]
    gateway.answers[LETTERS] = letter_page(dead_letter(1039))
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Read again").click()
    expect(letters(page)).to_have_count(1)
    expect(page.get_by_role("button", name="Redrive…")).to_be_disabled()


def test_lines_of_an_actor_go_back_as_far_as_the_address_says(gateway: StubGateway, opened: OpenedPage) -> None:
    page = opened.open("#/mesh/price-order?show=logs")
    expect(page.get_by_role("list", name="Lines").get_by_role("listitem")).to_have_count(2)
    page.get_by_label("Lines of the last").select_option("24 hours")
    assert page.url.endswith("#/mesh/price-order?show=logs&age=24h")
    gateway.answers[f"{OPERATIONS}/actors/price-order/logs"] = {"items": []}
    page.get_by_role("button", name="Read again").click()
    expect(page.get_by_text("The actor has logged nothing in this time.")).to_be_visible()


def test_dead_letters_of_all_queues_are_on_one_page(gateway: StubGateway, opened: OpenedPage) -> None:
    sump = dead_letter(1042, actor="x-sump", error={"type": "AccessDenied", "message": "x-sump may not write"})
    request = dead_letter(1043, actor="x-completion", id="message-1043", body="{}", size=2)
    del request["hop"], request["generation"], request["task"]
    queues = [{"actor": actor, "visible": 1, "hidden": 0} for actor in ("price-order", "x-completion", "x-sump")]
    gateway.answers[LETTERS] = letter_page(dead_letter(1041), request, sump) | {"queues": queues}
    page = opened.open()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Dead letters").click()
    listed = page.get_by_role("list", name="Queues")
    expect(listed.get_by_role("listitem")).to_have_text(["price-order: 1", "x-completion: 1", "x-sump: 1"])
    expect(letters(page)).to_have_count(3)
    expect(letters(page).nth(1)).to_contain_text("at x-completion")
    letters(page).nth(2).get_by_text("Body", exact=True).click()
    expect(letters(page).nth(2).locator("pre")).to_contain_text('"id": "order-1042"')
    expect(letters(page).nth(1).get_by_role("link")).to_have_count(0)
    page.get_by_label("Select all").check()
    page.get_by_role("button", name="Redrive…").click()
    page.get_by_role("button", name="Redrive 3 tasks").click()
    expect(page.get_by_role("dialog")).to_contain_text("3 tasks done, 0 refused")
    assert sorted(gateway.redrives) == ["message-1043", "order-1041", "order-1042"]
    page.get_by_role("button", name="Close").click()
    listed.get_by_role("link", name="x-sump").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Dead letters of x-sump")
    page.get_by_role("link", name="All queues").click()
    assert page.url.endswith("#/dead-letters")


@pytest.mark.parametrize("view", ["#/mesh/nobody", "#/mesh/nobody?show=logs"])
def test_an_actor_that_does_not_exist_is_told(opened: OpenedPage, view: str) -> None:
    expect(opened.open(view).get_by_role("alert")).to_be_visible()


def test_an_actor_without_rules_may_send_to_every_actor(gateway: StubGateway, opened: OpenedPage) -> None:
    none = {"can_send_to": None, "policies": {}, "rules": [], "circuit_breaker": None, "recent_errors": []}
    gateway.answers[f"{OPERATIONS}/actors/report"] = {**actor_details("report"), **none}
    panel = opened.open("#/mesh/report").get_by_role("tabpanel")
    expect(panel).to_contain_text("May send toevery actor")
    expect(panel).to_contain_text("A call that fails is not tried again.")
    expect(panel).to_contain_text("No task of the newest failed ones has failed here.")
