"""The browser, and the console before a gateway in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console.browser import OpenedPage, running_browser, running_console
from tests.console.stub_gateway import StubGateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a module."""
    with running_browser() as browser:
        yield browser


@pytest.fixture
def gateway() -> StubGateway:
    """The gateway of a test."""
    return StubGateway()


@pytest.fixture
def opened(browser: Browser, gateway: StubGateway) -> Iterator[OpenedPage]:
    """A page of the console on a screen of common size."""
    with running_console(gateway) as address:
        page = OpenedPage.of(browser, address)
        try:
            yield page
            assert page.problems() == []
        finally:
            page.close()
