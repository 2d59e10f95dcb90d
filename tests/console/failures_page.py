"""What a reader does on the page of failures: follows a group to its tasks, and acts on all of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page


def show_group(page: Page, cause: str, actor: str) -> None:
    """Follow the group of the failures at an actor to its tasks.

    Args:
        cause: a regular expression of the group's text.
    """
    page.evaluate("location.hash = '#/tasks?status=failed'")
    group = page.get_by_role("link", name=re.compile(cause))
    count = int(group.inner_text().split()[0])
    group.click()
    expect(page).to_have_url(re.compile(f"actor={actor}&"))
    expect(page.locator("tr.task")).to_have_count(count)


def act_on_group(page: Page, cause: str, actor: str, action: str, *, reason: str = "") -> None:
    """Act on all tasks of a group, in a dialog; all must be done."""
    show_group(page, cause, actor)
    page.get_by_label("Select all loaded tasks").check()
    page.get_by_role("button", name=f"{action}…").click()
    if reason:
        page.get_by_label("Why nothing has to be done").fill(reason)
    page.get_by_role("dialog").get_by_role("button", name=re.compile(rf"{action} \d+ task")).click()
    expect(page.get_by_role("dialog")).to_contain_text(re.compile(r"[1-9]\d* tasks? done, 0 refused"))
    page.get_by_role("button", name="Close").click()
