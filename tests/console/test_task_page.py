"""The page of a task: its route, hops, slices, partials, payloads and lines, live; and what can be done about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest
from playwright.sync_api import expect

from tests.console.browser import OpenedPage, running_console
from tests.console.sample_mesh import FAILED, ORIGIN, PAUSED, event, fill, hop
from tests.console.sample_operations import MESH, RUN, UNREAD, mesh_numbers
from tests.console.stub_gateway import at

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.console.stub_gateway import StubGateway


@pytest.fixture(autouse=True)
def mesh(gateway: StubGateway) -> None:
    fill(gateway)


def test_a_failed_task_tells_where_and_why(opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{FAILED}")
    expect(page.get_by_role("heading", name="Error at price-order")).to_be_visible()
    expect(page.locator("pre")).to_contain_text('price = prices[order["article"]]')
    drawing = page.get_by_role("img", name="check-order (passed), price-order (ended here), approve (to come)")
    expect(drawing).to_be_visible()
    expect(drawing).to_contain_text("3 attempts")


@pytest.mark.rule("13.retry")
def test_a_retried_task_shows_its_last_error_its_attempts_and_the_next_one(
    gateway: StubGateway, opened: OpenedPage
) -> None:
    retry = {
        "attempt": 2,
        "max_attempts": 5,
        "error": {"type": "ConnectionError", "message": "refused by host-7"},
        "failed_at": at(40),
        "next_at": at(100),
    }
    gateway.add(
        "order-2100", "running", actor="price-order", retry=retry, error_group="ConnectionError: refused by host-#"
    )
    page = opened.open("#/tasks?retrying=true")
    expect(page.get_by_role("checkbox", name="retried")).to_be_checked()
    row = page.get_by_role("row").filter(has_text="order-2100")
    expect(row).to_contain_text("attempt 2 of 5 failed, the next is due at")
    expect(row).to_contain_text("ConnectionError: refused by host-7")
    expect(page.get_by_role("row").filter(has_text=FAILED)).to_have_count(0)
    row.get_by_role("link", name="order-2100").click()
    part = page.get_by_role("region", name="Attempt 2 of 5 failed at price-order")
    expect(part).to_contain_text("ConnectionError: refused by host-7")
    expect(part).to_contain_text("The next attempt is due at")
    gateway.change("order-2100", retry={name: value for name, value in retry.items() if name != "next_at"})
    expect(part).to_contain_text("The next attempt is at work.")


def test_the_route_moves_with_the_task(gateway: StubGateway, opened: OpenedPage) -> None:
    route = {"prev": [], "curr": "check-order", "next": ["price-order"]}
    gateway.add("order-2000", "running", route=route)
    gateway.events["order-2000"] = [event("status", "1", {"status": "running"})]
    page = opened.open("#/tasks/order-2000")
    expect(page.get_by_role("img", name="check-order (here), price-order (to come)")).to_be_visible()
    gateway.change("order-2000", route={"prev": ["check-order"], "curr": "price-order", "next": []}, updated_at="2027")
    expect(page.get_by_role("img", name="check-order (passed), price-order (here)")).to_be_visible()
    gateway.change("order-2000", status="succeeded", result={"total": 12})
    expect(page.get_by_role("img", name="check-order (passed), price-order (passed)")).to_be_visible()
    expect(page.locator("pre")).to_contain_text('"total": 12')


def test_hops_separate_waiting_from_working(opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{FAILED}?show=hops")
    cells = page.get_by_role("row").filter(has_text="attempt 3").get_by_role("cell")
    expect(cells.nth(3)).to_have_text("3.5 s")
    expect(cells.nth(4)).to_have_text("400 ms")


def test_spark_stages_are_under_the_hop_of_their_job_run(gateway: StubGateway, opened: OpenedPage) -> None:
    stages = [{"stage": 4, "name": "sum by country", "tasks": 200, "done": 50, "began_at": at(60)}]
    run = {"run_id": "asya.shop.forecast.7", "job_run_id": "00f", "state": "RUNNING", "at": at(70), "stages": stages}
    gateway.add("order-3000", "running", actor="forecast")
    heavy = {**hop(0, "forecast", 1, 40, 50), "run": {**run, "envelopes": 1}}
    gateway.answers["/api/v1/mesh/order-3000/timeline"] = {"items": [heavy]}
    page = opened.open("#/tasks/order-3000?show=hops")
    cells = page.get_by_role("row").filter(has_text="sum by country").get_by_role("cell")
    expect(cells.nth(4)).to_have_text("50 of 200 tasks")
    page.get_by_role("link", name="job run").click()
    assert page.url.endswith("#/runs/asya.shop.forecast.7")


@pytest.mark.parametrize("is_local", [True, False])
def test_hops_lead_to_their_trace_in_x_ray_but_not_on_this_machine(
    browser: Browser, gateway: StubGateway, is_local: bool
) -> None:
    traced = {**hop(0, "check-order", 1, 40, 41, 42), "trace_id": "5759e988bd862e3fe1be46a994272793"}
    gateway.answers[f"/api/v1/mesh/{FAILED}/timeline"] = {"items": [traced, {**traced, "position": 1}]}
    with running_console(gateway, is_local=is_local) as address:
        opened = OpenedPage.of(browser, address)
        page = opened.open(f"#/tasks/{FAILED}?show=hops")
        expect(page.get_by_role("row").filter(has_text="check-order")).to_have_count(2)
        link = page.get_by_role("link", name="The trace in X-Ray")
        expect(link).to_have_count(0 if is_local else 1)
        if not is_local:
            expect(link).to_have_attribute("href", re.compile("#xray:traces/1-5759e988-bd862e3fe1be46a994272793$"))
        opened.close()


def test_partials_of_a_hop_are_one_text(opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{FAILED}?show=partials")
    expect(page.locator("pre")).to_have_text("looking up the price")


def test_payloads_show_what_a_hop_has_changed(opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{FAILED}?show=payloads")
    page.get_by_label("Hop").select_option("0")
    expect(page.locator("ins")).to_contain_text('"checked": true')
    assert page.url.endswith(f"#/tasks/{FAILED}?show=payloads&hop=0")


def test_lines_of_a_task_are_listed(opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{FAILED}")
    page.get_by_role("tab", name="Logs").click()
    expect(page.get_by_role("list", name="Lines").get_by_role("listitem")).to_have_count(3)


def test_slices_are_grouped_by_status_and_lead_to_their_pages(opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{ORIGIN}?show=children")
    expect(page.locator("summary").filter(has_text="failed")).to_contain_text("1")
    page.get_by_role("group").get_by_role("link", name=f"{ORIGIN}-3", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"{ORIGIN}-3")
    page.get_by_role("link", name=ORIGIN, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(ORIGIN)


def test_a_running_set_says_which_slices_are_missing(gateway: StubGateway, opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{ORIGIN}")
    expect(page.get_by_text("Waits for 3 of 14 slices: 3, 7, 13")).to_be_visible()
    page.get_by_role("link", name="3 of 14 slices").click()
    missing = page.get_by_role("region", name="3 of 14 slices missing").get_by_role("listitem")
    expect(missing.nth(0)).to_contain_text("Slice 3 ended without a result")
    expect(missing.nth(1)).to_contain_text(re.compile("Slice 7 . running"))
    expect(missing.nth(2)).to_contain_text("Slice 13 has reported nothing")
    address = f"/api/v1/mesh/{ORIGIN}/set"
    fewer = gateway.answers[address]["set"]
    gateway.answers[address] = {"set": {**fewer, "missing": fewer["missing"][:1]}}
    expect(page.get_by_role("heading", name="1 of 14 slices missing")).to_be_visible()


def test_a_task_whose_queue_nobody_reads_says_so_with_the_repair(gateway: StubGateway, opened: OpenedPage) -> None:
    numbers = mesh_numbers()
    next(each for each in numbers["actors"] if each["name"] == "check-order").update(not_read=UNREAD)
    gateway.answers[MESH] = numbers
    page = opened.open("#/tasks/order-1043")
    told = page.get_by_text("The queue of check-order is not read: event source mapping disabled")
    expect(told).to_contain_text("aws lambda update-event-source-mapping --uuid 7f3a --enabled")
    expect(page.get_by_text("The queue of split-order")).to_have_count(0)


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (
            {"type": "CircuitOpen", "message": "the circuit of stock is open, after ConnectionError"},
            "It waits: CircuitOpen: the circuit of stock is open, after ConnectionError",
        ),
        (
            {"type": "Outage", "message": "S3 has not answered since 2026-11-28T10:03:00.000000Z (503)"},
            "It may wait: Outage: S3 has not answered since 2026-11-28T10:03:00.000000Z (503)",
        ),
    ],
    ids=["circuit", "outage"],
)
def test_a_task_that_waits_says_for_what(
    gateway: StubGateway, opened: OpenedPage, problem: dict[str, str], told: str
) -> None:
    gateway.add("order-2000", "running", actor="stock", problem=problem)
    expect(opened.open("#/tasks/order-2000").get_by_text(told)).to_be_visible()


def test_tabs_follow_the_arrow_keys(opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{FAILED}")
    page.get_by_role("tab", name="Overview").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Hops")).to_be_focused()
    expect(page.get_by_role("tab", name="Hops")).to_have_attribute("aria-selected", "true")


def test_a_pause_is_answered_by_a_form(gateway: StubGateway, opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{PAUSED}")
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_label("May it leave?")).to_have_attribute("aria-invalid", "true")
    assert gateway.calls == []
    page.get_by_label("May it leave?").select_option("yes")
    page.get_by_label("By whom? (optional)").select_option("courier")
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_role("button", name="Answer")).to_have_count(0)
    answers = {"approved": True, "carrier": "courier"}
    assert gateway.calls == [("POST", f"/api/v1/mesh/{PAUSED}/resume", {"input": answers, "since": at(42)})]


@pytest.mark.parametrize("number", ["3544790567247868102", "1e400", "-12345678901234567.890", "1.0"])
def test_a_number_keeps_its_digits_on_the_whole_page(gateway: StubGateway, opened: OpenedPage, number: str) -> None:
    """A default and a typed answer reach the gateway as they are, and a result, a partial and a payload are shown so."""
    written = msgspec.Raw(number.encode())
    fields = [{"name": "limit", "type": "number", "default": written}, {"name": "amount", "type": "number"}]
    gateway.add("order-3000", "paused", pause={"prompt": "How much?", "fields": fields, "since": at(42)})
    page = opened.open("#/tasks/order-3000")
    expect(page.get_by_label("limit (optional)")).to_have_value(number)
    page.get_by_label("amount").fill(number)
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_role("button", name="Answer")).to_have_count(0)
    assert gateway.bodies == [f'{{"input":{{"limit":{number},"amount":{number}}},"since":"{at(42)}"}}'.encode()]

    gateway.add("order-3001", result={"total": written})
    partial = {"actor": "a", "position": 0, "attempt": 1, "sequence": 0, "data": {"sum": written}}
    told = b"event: partial\nid: 1\ndata: " + msgspec.json.encode(partial) + b"\n\n"
    gateway.events["order-3001"] = [told, event("final", "2", {})]  # a stream without its end is asked for again
    address = "/api/v1/mesh/order-3001/payloads"
    gateway.answers[address] = {"items": [{"hop": 0, "actor": "a", "generation": 0, "before": True, "after": True}]}
    kept = {"uri": "s3://shop/0", "size": 20}
    gateway.answers[f"{address}/0"] = {
        "before": {**kept, "text": f'{{"total":{number}}}'},
        "after": {**kept, "text": f'{{"total":{number}1}}'},
    }
    page = opened.open("#/tasks/order-3001")
    expect(page.get_by_role("region", name="Result").locator("pre")).to_have_text(f'{{\n  "total": {number}\n}}')
    page.get_by_role("tab", name="Partials").click()
    expect(page.get_by_role("tabpanel").locator("pre")).to_have_text(f'{{"sum":{number}}}')
    page.get_by_role("tab", name="Payloads").click()
    expect(page.locator("section.difference del")).to_have_text(f'-   "total": {number}')
    expect(page.locator("section.difference ins")).to_have_text(f'+   "total": {number}1')


def test_a_browser_that_would_round_is_refused(opened: OpenedPage) -> None:
    opened.page.add_init_script("delete JSON.rawJSON")
    page = opened.open("#/tasks")
    expect(page.get_by_role("heading", name="This browser is too old")).to_be_visible()


@pytest.mark.rule("11.pause.shown-to", "11.pause.shown-value")
def test_a_pause_shows_values_of_the_payload(opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{PAUSED}")
    shown = page.locator("dl.shown > div")
    expect(shown).to_have_count(4)
    expect(shown.nth(0)).to_have_text("/total12345678901234567.89")
    expect(shown.nth(1)).to_contain_text('"uri": "s3://shop-data/reports/42.html')
    expect(shown.nth(1)).to_contain_text("shortened")
    expect(shown.nth(2).get_by_role("link")).to_have_attribute("href", "https://shop.example/invoices/42")
    expect(shown.nth(3)).to_have_text("/notemissing")


@pytest.mark.parametrize(("start", "sent"), [("where it failed", {}), ("hop 0: check-order", {"hop": 0})])
def test_a_task_is_replayed_from_any_hop(
    gateway: StubGateway, opened: OpenedPage, start: str, sent: dict[str, int]
) -> None:
    page = opened.open(f"#/tasks/{FAILED}")
    page.get_by_role("button", name="Replay…").click()
    page.get_by_label("Start from").select_option(start)
    page.get_by_role("button", name="Replay 1 task").click()
    page.get_by_role("dialog").get_by_role("link", name=f"{FAILED}-again").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"{FAILED}-again")
    assert gateway.calls == [("POST", f"/api/v1/mesh/{FAILED}/replay", sent)]


def test_a_task_is_canceled_and_a_dead_letter_redriven(gateway: StubGateway, opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{PAUSED}")
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel 1 task").click()
    page.get_by_role("button", name="Close").click()
    expect(page.locator("dl.facts")).to_contain_text("canceled")
    gateway.add("order-2001", "failed", actor="ship-order", reason="DeliveryExhausted")
    page = opened.open("#/tasks/order-2001")
    page.get_by_role("button", name="Redrive…").click()
    page.get_by_role("button", name="Redrive 1 task").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 task done, 0 refused")
    assert gateway.redrives == ["order-2001"]


def test_a_failed_task_without_a_dead_letter_says_why_it_is_not_redriven(opened: OpenedPage) -> None:
    page = opened.open(f"#/tasks/{FAILED}")
    expect(page.get_by_role("button", name="Redrive…")).to_be_disabled()
    expect(page.get_by_text("No message of this task is a dead letter: it ended as PolicyExhausted.")).to_be_visible()


def test_a_canceled_task_says_who_canceled_it_and_a_paused_one_that_its_deadline_stands_still(
    gateway: StubGateway, opened: OpenedPage
) -> None:
    gateway.add("order-2002", "canceled", reason="Canceled", canceled={"at": at(50), "by": "AIDAOSCAR"})
    page = opened.open("#/tasks/order-2002")
    expect(page.get_by_text("Canceled by AIDAOSCAR")).to_contain_text("starts it again as a new task")
    page = opened.open("#/tasks?status=canceled")
    expect(page.get_by_role("row").filter(has_text="order-2002")).to_contain_text("Canceled by AIDAOSCAR")
    gateway.add(
        "order-2003", "paused", deadline_at=at(300), pause={"prompt": "Ship it?", "fields": [], "since": at(42)}
    )
    page = opened.open("#/tasks/order-2003")
    expect(page.locator("dl.facts")).to_contain_text("stands still while the task is paused")


def test_a_failed_task_leads_to_its_job_runs(gateway: StubGateway, opened: OpenedPage) -> None:
    run = {"run_id": RUN, "job_run_id": "00f1", "state": "FAILED", "at": at(50), "envelopes": 1}
    hop = {"generation": 0, "position": 0, "attempt": 1, "actor": "forecast", "received_at": at(40), "run": run}
    gateway.add("order-2004", "failed", actor="forecast")
    gateway.answers["/api/v1/mesh/order-2004/timeline"] = {"items": [hop]}
    page = opened.open("#/tasks/order-2004")
    page.locator("dl.facts").get_by_role("link", name=RUN).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(RUN)


def test_a_replay_offers_only_hops_whose_input_is_kept(gateway: StubGateway, opened: OpenedPage) -> None:
    kept = {"generation": 0, "before": True, "after": True, "size": 9}
    hops = [("input", "check-order"), ("dead_letter", "price-order"), ("checkpoint", "approve")]
    gateway.answers[f"/api/v1/mesh/{FAILED}/payloads"] = {
        "items": [{**kept, "hop": hop, "actor": actor, "copy": copy} for hop, (copy, actor) in enumerate(hops)]
    }
    page = opened.open(f"#/tasks/{FAILED}")
    page.get_by_role("button", name="Replay…").click()
    starts = page.get_by_label("Start from").get_by_role("option")
    expect(starts).to_have_text(["where it failed", "hop 0: check-order", "checkpoint 2: approve"])


def test_a_task_that_does_not_exist_is_told(opened: OpenedPage) -> None:
    page = opened.open("#/tasks/none")
    expect(page.get_by_role("alert")).to_contain_text("there is no task 'none'")


def test_a_failed_task_leads_to_its_replay_and_back(gateway: StubGateway, opened: OpenedPage) -> None:
    replayed = {"how": "replayed", "by": "operator", "at": at(9), "task": "order-2002", "status": "succeeded"}
    gateway.change(FAILED, resolution=replayed)
    gateway.add("order-2002", started_by={"kind": "replay", "name": FAILED})
    page = opened.open(f"#/tasks/{FAILED}")
    section = page.get_by_role("region", name="What became of the task")
    expect(section).to_contain_text(re.compile("Replayed by operator.* as order-2002: succeeded"))
    for action in ("Redrive…", "Dismiss…"):
        expect(page.get_by_role("button", name=action)).to_be_disabled()
    page.get_by_role("button", name="Replay…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Replay 1 task")).to_be_disabled()
    dialog.get_by_label("once more, although it is settled").check()
    dialog.get_by_role("button", name="Replay 1 task").click()
    expect(dialog.get_by_role("link", name=f"{FAILED}-again")).to_be_visible()
    assert gateway.calls[-1][2]["force"] is True
    dialog.get_by_role("button", name="Close").click()
    section.get_by_role("link", name="order-2002").click()
    expect(page.locator("dl.facts")).to_contain_text(f"replay of {FAILED}")


def test_a_dismissal_is_undone(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.change(FAILED, resolution={"how": "dismissed", "by": "operator", "at": at(9), "reason": "a test"})
    page = opened.open(f"#/tasks/{FAILED}")
    section = page.get_by_role("region", name="What became of the task")
    expect(section).to_contain_text(": a test")
    section.get_by_role("button", name="Open the failure again").click()
    expect(section).to_have_count(0)
    assert gateway.calls == [("POST", f"/api/v1/mesh/{FAILED}/dismiss", {"undo": True})]
