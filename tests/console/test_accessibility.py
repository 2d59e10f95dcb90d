"""Every page works for a screen reader and on a phone: axe finds nothing, and nothing is wider than the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.console.browser import OpenedPage, running_console
from tests.console.sample_mesh import VIEWS, fill
from tests.paths import PROJECT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.console.stub_gateway import StubGateway

AXE = PROJECT / "console" / "node_modules" / "axe-core" / "axe.min.js"


def violations(page: Page) -> list[str]:
    """What axe finds: the rule, and the first element that breaks it."""
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate("axe.run()")
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_axe_finds_nothing_and_nothing_is_too_wide(
    browser: Browser, gateway: StubGateway, width: int, scheme: str
) -> None:
    fill(gateway)
    with running_console(gateway) as address:
        opened = OpenedPage.of(browser, address, width, 800, scheme)
        page = opened.open()
        for view, shown in VIEWS.items():
            page.evaluate("view => { location.hash = view }", view)
            expect(page.get_by_text(shown).first).to_be_visible()
            assert violations(page) == [], view
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        assert opened.problems() == []
        opened.close()


def test_a_dialog_is_readable_too(gateway: StubGateway, opened: OpenedPage) -> None:
    fill(gateway)
    page = opened.open()
    page.get_by_label("Select all loaded tasks").check()
    page.get_by_role("button", name="Cancel…").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_graph_of_the_mesh_is_readable_too(browser: Browser, gateway: StubGateway, scheme: str) -> None:
    fill(gateway)
    with running_console(gateway) as address:
        opened = OpenedPage.of(browser, address, scheme=scheme)
        page = opened.open("#/mesh")
        expect(page.get_by_role("group", name="Graph of the mesh").get_by_role("link")).to_have_count(10)
        assert violations(page) == []
        opened.close()
