"""The console on the deployed mesh: `asya ui` signs the calls of the page with the operator's key."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.cloud.deployed_cloud import DeployedCloud
from tests.cloud.paths_mesh import NewEnvelope, send, wait_for_final_state
from tests.console.browser import OpenedPage, running_browser
from tests.console.process import running_ui

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cloud

ASYA = Path(sys.executable).parent / "asya"


@pytest.fixture(scope="module")
def console(paths: DeployedCloud) -> Iterator[OpenedPage]:
    """The page, on the paths mesh."""
    with running_ui(ASYA, paths.state, os.environ) as address, running_browser() as browser:
        opened = OpenedPage.of(browser, address, clock=None)
        opened.open()
        yield opened
        assert opened.problems() == []
        opened.close()


def test_a_task_appears_and_ends_before_the_readers_eyes(paths: DeployedCloud, console: OpenedPage) -> None:
    page = console.page
    page.evaluate("location.hash = '#/tasks?actor=step'")
    task_id = send(paths, NewEnvelope(["step"], {}, envelope_id="console-step"))
    row = page.locator("tr.task").filter(has=page.get_by_role("link", name=task_id, exact=True))
    expect(row).to_contain_text("succeeded")


def test_failed_tasks_are_grouped_and_replayed(paths: DeployedCloud, console: OpenedPage) -> None:
    ids = [f"console-order-{number}" for number in range(2)]
    for task_id in ids:
        send(paths, NewEnvelope(["clerk"], {"order": task_id}, envelope_id=task_id))
    for task_id in ids:
        assert wait_for_final_state(paths, task_id).task.status == "failed"
    page = console.page
    page.evaluate("location.hash = '#/tasks?status=failed&error=no+such+order%3A+console'")
    expect(page.locator("tr.task")).to_have_count(2)
    expect(page.get_by_role("link", name="ValueError: no such order: console-order-# at clerk")).to_be_visible()
    page.get_by_label("Select all loaded tasks").check()
    page.get_by_role("button", name="Replay…").click()
    page.get_by_role("button", name="Replay 2 tasks").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 tasks done, 0 refused")
    page.get_by_role("button", name="Close").click()
    # The cause is not repaired: the failures go on in the replays, which count in their place.
    rows = page.locator("tr.task")
    for task_id in ids:
        expect(rows.filter(has=page.get_by_role("link", name=task_id, exact=True))).to_have_count(0)
    expect(rows).to_have_count(2)
    # They need no further replay: no failure of the orders is open any more.
    page.get_by_label("Select all loaded tasks").check()
    page.get_by_role("button", name="Dismiss…").click()
    page.get_by_label("Why nothing has to be done").fill("orders of a test")
    page.get_by_role("button", name="Dismiss 2 tasks").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 tasks done, 0 refused")
    page.get_by_role("button", name="Close").click()
    expect(rows).to_have_count(0)
    expect(page.get_by_role("link", name="4 settled failures")).to_be_visible()
    for task_id in ids:
        task = paths.mesh.task(task_id)
        assert task is not None
        assert task.resolution is not None
        assert (task.resolution.how, task.resolution.reason) == ("dismissed", "orders of a test")


def test_a_running_task_is_canceled(paths: DeployedCloud, console: OpenedPage) -> None:
    body = {"order": "console-canceled"}
    task_id = send(paths, NewEnvelope(["approve", "clerk"], body, envelope_id="console-canceled"))
    page = console.page
    page.evaluate("location.hash = '#/tasks?status=paused'")
    page.get_by_label(f"Select {task_id}").check()
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel 1 task").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 task done, 0 refused")
    page.get_by_role("button", name="Close").click()
    assert paths.wait_for_end(task_id).status == "canceled"


def test_a_question_is_answered_and_the_route_goes_on(paths: DeployedCloud, console: OpenedPage) -> None:
    task_id = send(paths, NewEnvelope(["approve", "step"], {"report": {}}, envelope_id="console-answered"))
    page = console.page
    page.evaluate(f"location.hash = '#/tasks/{task_id}'")
    page.get_by_label("Yes or no?").select_option("yes")
    expect(page.get_by_role("img", name="approve (here), x-resume (to come), step (to come)")).to_be_visible()
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_role("img", name="approve (passed), x-resume (passed), step (passed)")).to_be_visible()
    page.get_by_role("tab", name="Hops").click()
    expect(page.get_by_role("cell", name="approve", exact=True)).to_be_visible()


def test_the_mesh_shows_its_actors_and_leads_to_what_failed_there(paths: DeployedCloud, console: OpenedPage) -> None:
    order = "console-mesh"
    task_id = send(paths, NewEnvelope(["clerk"], {"order": order}, envelope_id=order))
    assert wait_for_final_state(paths, task_id).task.status == "failed"
    page = console.page
    page.evaluate("location.hash = '#/mesh'")
    page.get_by_role("group", name="Graph of the mesh").get_by_role("link", name="clerk").click()
    page.get_by_role("tabpanel").get_by_role("link", name=order, exact=True).first.wait_for()
    expect(page.get_by_role("tabpanel")).to_contain_text(f"ValueError: no such order: {order}")
    page.get_by_role("tab", name="Dead letters").click()
    expect(page.get_by_role("status").filter(has_text="0 dead letters")).to_be_visible()
    page.get_by_role("tab", name="Logs").click()
    expect(page.get_by_role("list", name="Lines").get_by_role("listitem").first).to_be_visible()


def test_a_stranger_reads_no_task(console: OpenedPage) -> None:
    address = console.address.partition("#")[0]
    request = console.context.request
    answers = [
        request.get(f"{address}api/v1/mesh"),
        request.get(f"{address}api/v1/mesh", headers={"x-asya-console-secret": "guess"}),
        request.delete(f"{address}api/v1/mesh/console-step"),
    ]
    assert [answer.status for answer in answers] == [403, 403, 403]
    assert {json.loads(answer.text())["error"]["code"] for answer in answers} <= {"wrong_secret", "wrong_origin"}
