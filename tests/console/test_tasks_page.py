"""The page of tasks: live, filtered, grouped, and with actions on many."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.console.stub_gateway import at

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.console.browser import OpenedPage
    from tests.console.stub_gateway import StubGateway

KEY_ERROR = {"type": "KeyError", "message": "'price'"}
ROWS_LIMIT = 60


def rows(page: Page) -> list[str]:
    """The ids of the rows in the document."""
    return page.locator("tr.task td.id a").all_inner_texts()


def row(page: Page, task_id: str) -> object:
    return page.locator("tr.task").filter(has=page.get_by_role("link", name=task_id, exact=True))


def test_new_and_changed_tasks_appear_by_themselves(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("order-1", "running")
    page = opened.open()
    expect(page.locator("tr.task")).to_have_count(1)
    gateway.add("order-2", "pending")
    expect(page.locator("tr.task")).to_have_count(2)
    assert rows(page) == ["order-2", "order-1"]
    gateway.change("order-1", status="failed", error=KEY_ERROR)
    expect(page.locator("tr.task").nth(1)).to_contain_text("KeyError: 'price'")
    expect(page.locator("tr.task").nth(1)).to_contain_text("failed")


def test_filters_are_in_the_address_and_the_other_way_round(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("fine")
    gateway.add("broken", "failed", error=KEY_ERROR, actor="sales", tool="order", owner="ann")
    gateway.add("other", "failed", error={"type": "ValueError", "message": "no rows"}, actor="sales")
    page = opened.open()
    page.get_by_label("Status").select_option("failed")
    expect(page.locator("tr.task")).to_have_count(2)
    page.get_by_label("Text of the error").fill("keyerror")
    expect(page.locator("tr.task")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"#/tasks\?status=failed&error=keyerror$"))
    page.reload()
    expect(page.locator("tr.task")).to_have_count(1)
    expect(page.get_by_label("Text of the error")).to_have_value("keyerror")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("tr.task")).to_have_count(3)
    for name, text in (("Tool", "order"), ("Actor", "sales"), ("Owner", "ann")):
        page.get_by_label(name, exact=True).fill(text)
    # One field is enough for this count; the address has the others a moment later.
    expect(page.locator("tr.task")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"#/tasks\?tool=order&actor=sales&owner=ann$"))


def test_a_group_of_the_same_error_selects_its_tasks(gateway: StubGateway, opened: OpenedPage) -> None:
    for number in range(37):
        error = {"type": "KeyError", "message": f"'price' in row {number}"}
        gateway.add(f"order-{number}", "failed", error=error, actor="sales-by-country")
    gateway.add("order-x", "failed", error=KEY_ERROR, actor="bill")
    page = opened.open()
    group = page.get_by_role("link", name="37 × KeyError: 'price' in row # at sales-by-country")
    group.click()
    expect(page.get_by_role("status").filter(has_text="37 tasks")).to_be_visible()
    assert "actor=sales-by-country" in page.url


def test_groups_of_the_gateway_count_all_tasks(gateway: StubGateway, opened: OpenedPage) -> None:
    group = {"actor": "bill", "error": "Timeout", "count": 4711, "first": "", "last": "", "example": "a"}
    gateway.answers["/api/v1/operations/failures"] = {"items": [group]}
    page = opened.open()
    expect(page.get_by_role("link", name="4711 × Timeout at bill")).to_be_visible()


def select(page: Page, *ids: str) -> None:
    for task_id in ids:
        page.get_by_label(f"Select {task_id}", exact=True).check()


@pytest.mark.parametrize(
    ("action", "status", "ids"),
    [("Cancel", "running", ["order-1", "order-2"]), ("Replay", "failed", ["order-3", "order-4"])],
)
def test_an_action_on_many_asks_how_many_and_tells_what_became_of_them(
    gateway: StubGateway, opened: OpenedPage, action: str, status: str, ids: list[str]
) -> None:
    gateway.add("order-0")
    for number in (1, 2):
        gateway.add(f"order-{number}", "running")
    for number in (3, 4):
        gateway.add(f"order-{number}", "failed", error=KEY_ERROR)
    page = opened.open()
    select(page, "order-0", *ids)
    page.get_by_role("button", name=f"{action}…").click()
    dialog = page.get_by_role("dialog", name=f"{action} 2 tasks?")
    expect(dialog).to_contain_text("1 selected task left out")
    assert gateway.calls == []
    dialog.get_by_role("button", name=f"{action} 2 tasks").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 tasks done, 0 refused")
    assert {path.split("/")[4] for _, path, _ in gateway.calls} == set(ids)
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_dead_letters_are_redriven_and_a_refusal_is_told(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("order-1", "failed", actor="", reason="DeliveryExhausted")
    gateway.add("order-2", "failed", reason="DeliveryExhausted")
    page = opened.open()
    page.get_by_label("Select all loaded tasks").check()
    page.get_by_role("button", name="Redrive…").click()
    page.get_by_role("button", name="Redrive 2 tasks").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 task done, 1 refused")
    expect(page.get_by_role("dialog")).to_contain_text("there is no dead letter of this task")
    assert sorted(gateway.redrives) == ["order-1", "order-2"]


def asking(gateway: StubGateway, number: int, actor: str = "approve") -> str:
    """A task that waits for an answer."""
    fields = [{"name": "amount", "type": "number", "prompt": "How much?"}]
    pause = {"prompt": f"Pay order {number}?", "fields": fields, "since": at(number)}
    return str(gateway.add(f"order-{number}", "paused", actor=actor, pause=pause)["id"])


@pytest.mark.rule("11.resume.since")
def test_one_answer_is_for_many_tasks_and_a_refusal_is_told(gateway: StubGateway, opened: OpenedPage) -> None:
    ids = [asking(gateway, number) for number in range(3)]
    gateway.add("order-9", "running")
    page = opened.open()
    select(page, *ids, "order-9")
    page.get_by_role("button", name="Answer…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem")).to_have_text(["Pay order 2?", "Pay order 1?", "Pay order 0?"])
    expect(dialog).to_contain_text("1 selected task left out")
    dialog.get_by_role("button", name="Answer 3 tasks").click()
    expect(dialog.get_by_label("How much?")).to_have_attribute("aria-invalid", "true")
    assert gateway.calls == []
    del gateway.tasks["order-1"]  # answered, and expired meanwhile
    dialog.get_by_label("How much?").fill("12.50")
    dialog.get_by_role("button", name="Answer 3 tasks").click()
    expect(dialog).to_contain_text("2 tasks done, 1 refused")
    expect(dialog).to_contain_text("order-1: there is no task 'order-1'")
    sent = {path.split("/")[4]: body for _, path, body in gateway.calls}
    assert sent == {task_id: {"input": {"amount": 12.5}, "since": at(number)} for number, task_id in enumerate(ids)}


def test_one_answer_is_for_one_question(gateway: StubGateway, opened: OpenedPage) -> None:
    ids = [asking(gateway, 1), asking(gateway, 2, "refund")]
    page = opened.open()
    select(page, *ids)
    page.get_by_role("button", name="Answer…").click()
    expect(page.get_by_role("alert")).to_contain_text("these tasks wait at approve, refund")
    expect(page.get_by_role("button", name="Answer 2 tasks")).to_have_count(0)


def test_an_action_that_is_not_confirmed_changes_nothing(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("order-1", "running")
    page = opened.open()
    select(page, "order-1")
    page.get_by_role("button", name="Cancel…").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert gateway.calls == []


def test_of_10_000_tasks_few_rows_are_in_the_document(gateway: StubGateway, opened: OpenedPage) -> None:
    for number in range(10_000):
        gateway.add(f"order-{number}")
    page = opened.open()
    page.get_by_role("button", name="Load all").click()
    expect(page.get_by_role("status").filter(has_text="10,000 tasks")).to_be_visible()
    expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", "10001")
    counts = []
    scroller = page.get_by_role("region", name="Tasks, newest first")
    for place in (0, 0.25, 0.5, 0.75, 1):
        number = max(0, 9_999 - int(10_000 * place) - (5 if place < 1 else 0))
        # On a busy machine the table is not yet as high as its rows when their number is there.
        scroller.evaluate(
            """async (element, [place, name]) => {
                const isThere = () => [...element.querySelectorAll("a")].some(link => link.textContent === name)
                for (let frame = 0; frame < 1000 && !isThere(); frame++) {
                    element.scrollTop = element.scrollHeight * place
                    await new Promise(requestAnimationFrame)
                }
            }""",
            [place, f"order-{number}"],
        )
        expect(page.get_by_role("link", name=f"order-{number}", exact=True)).to_be_attached()
        counts.append(page.locator("tr.task").count())
    assert max(counts) <= ROWS_LIMIT


def test_arrows_move_between_the_tasks(gateway: StubGateway, opened: OpenedPage) -> None:
    for number in range(200):
        gateway.add(f"order-{number}")
    page = opened.open()
    page.get_by_role("link", name="order-199", exact=True).focus()
    for number in (198, 197, 196):
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("link", name=f"order-{number}", exact=True)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="order-197")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Tasks")).to_be_visible()


def test_times_are_those_of_the_readers_zone(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("order-1")
    page = opened.open()
    time = page.locator("tr.task time").first
    assert re.search(r"13:00", time.get_attribute("title") or "")  # 12:00 in UTC


def test_an_id_is_copied_by_a_click(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("order-1")
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = opened.open()
    page.get_by_role("button", name="Copy the id order-1").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "order-1"


def test_the_secret_leaves_the_address_and_follows_into_a_new_tab(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("order-1")
    page = opened.open()
    assert "secret" not in page.url
    other = opened.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("link", name="order-1", exact=True)).to_be_visible()


def test_a_reader_without_the_secret_sees_no_task(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("order-1")
    opened.page.goto(opened.address.partition("#")[0])
    expect(opened.page.get_by_role("heading", name="The console is closed here")).to_be_visible()
    opened.page.goto(opened.address.partition("#")[0] + "#secret=wrong")
    opened.page.reload()
    expect(opened.page.get_by_role("alert")).to_contain_text("asya ui")
    expect(opened.page.locator("tr.task")).to_have_count(0)


def test_settled_failures_are_counted_apart_and_shown_on_demand(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("order-1", "failed", error=KEY_ERROR)
    replayed = {"how": "replayed", "by": "operator", "at": at(9), "task": "order-3", "status": "succeeded"}
    gateway.add("order-2", "failed", error=KEY_ERROR, resolution=replayed)
    gateway.answers["/api/v1/operations/failures"] = {"items": [], "resolved": 1}
    page = opened.open("#/tasks?status=failed")
    expect(page.locator("section.groups")).to_contain_text("No open failures. 1 settled failure")
    expect(page.locator("tr.task")).to_have_count(1)
    page.get_by_role("link", name="1 settled failure").click()
    expect(page).to_have_url(re.compile("resolved=true"))
    expect(row(page, "order-2")).to_contain_text("replayed: succeeded")  # type: ignore[call-overload]


def test_failures_are_dismissed_with_a_reason(gateway: StubGateway, opened: OpenedPage) -> None:
    gateway.add("order-1", "failed", error=KEY_ERROR)
    page = opened.open("#/tasks?status=failed")
    select(page, "order-1")
    page.get_by_role("button", name="Dismiss…").click()
    dialog = page.get_by_role("dialog", name="Dismiss 1 task?")
    expect(dialog.get_by_role("button", name="Dismiss 1 task")).to_be_disabled()
    dialog.get_by_label("Why nothing has to be done").fill("the order was a test")
    dialog.get_by_role("button", name="Dismiss 1 task").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 task done, 0 refused")
    assert gateway.calls == [("POST", "/api/v1/mesh/order-1/dismiss", {"reason": "the order was a test"})]
    page.get_by_role("button", name="Close").click()
    expect(page.locator("tr.task")).to_have_count(0)
