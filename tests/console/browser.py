"""A headless Chromium, and the console with a gateway in memory."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from playwright.sync_api import expect, sync_playwright

from asya_cli.console.guard import Guard
from asya_cli.console.page import page_address, page_folder, read_page
from asya_cli.console.server import Console, GatewayCalls, MeshInfo, make_server
from tests.console.stub_gateway import NOW
from tests.doubles.server_faults import no_server_faults
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

    from asya_cli.console.redrives import RedriveAnswer, RedriveRequest

TIMEOUT_MILLISECONDS = 30_000
"""How long a test waits for something on the page; enough for a slow machine."""
expect.set_options(timeout=TIMEOUT_MILLISECONDS)
SECRET = "s3cret-of-the-tests"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-proxy-server"),
)
_FALLBACK = PROJECT / ".build" / "chromium" / "chromium"
"""Where `make setup` puts a Chromium on a machine without one."""
NO_CHROMIUM = (
    "there is no Chromium: install one (Debian, Ubuntu: sudo apt-get install chromium), or run `make setup`, "
    "which fetches one from npm"
)


def find_chromium() -> str:
    """The program of Chromium; a test that needs it fails without one."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None and _FALLBACK.exists():
        found = str(_FALLBACK)
    assert found is not None, NO_CHROMIUM
    return found


def _libraries() -> str:
    """The folders of libraries: last those that came with the fallback."""
    own = os.environ.get("LD_LIBRARY_PATH")
    return os.pathsep.join(filter(None, (own, str(_FALLBACK.parent / "al2023" / "lib") if _FALLBACK.exists() else "")))


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=list(_FLAGS), env={**os.environ, "LD_LIBRARY_PATH": _libraries()}
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True)
class OpenedPage:
    """A page in a context of its own, with what its scripts complained about.

    Attributes:
        address: The address of the page, with the secret.
        complaints: Errors of scripts, and violations of the policy.
    """

    page: Page
    context: BrowserContext
    address: str
    complaints: list[str]

    @classmethod
    def of(
        cls,
        browser: Browser,
        address: str,
        width: int = 1280,
        height: int = 900,
        scheme: Any = "light",
        *,
        clock: datetime | None = NOW,
    ) -> OpenedPage:
        """Open a context with one empty page.

        Args:
            clock: What the clock of the page shows; None for that of the machine, beside a mesh that has it too.
        """
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, timezone_id="Europe/Oslo", locale="en-GB"
        )
        context.set_default_timeout(TIMEOUT_MILLISECONDS)
        if clock is not None:
            context.clock.set_fixed_time(clock)
        page = context.new_page()
        complaints: list[str] = []

        def note(message: ConsoleMessage) -> None:
            # A call that is refused is part of some tests; the browser reports it, too.
            if message.type == "error" and not message.text.startswith("Failed to load resource"):
                complaints.append(message.text)

        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return cls(page, context, address, complaints)

    def open(self, view: str = "") -> Page:
        """Open the page, and then a view such as `#/tasks?status=failed`."""
        self.page.goto(self.address)
        self.page.wait_for_selector("main h1")
        if view:
            self.page.evaluate("view => { location.hash = view }", view)
        return self.page

    def problems(self) -> list[str]:
        """What went wrong in the page so far."""
        return self.complaints

    def close(self) -> None:
        """Close the page."""
        self.context.close()


class MemoryGateway(GatewayCalls, Protocol):
    """A gateway in this process."""

    def redrive(self, request: RedriveRequest) -> RedriveAnswer:
        """Redrive dead letters."""


@contextmanager
def running_console(gateway: MemoryGateway, *, is_local: bool = True) -> Iterator[str]:
    """The console before a gateway in memory; yields the address of its page, with the secret."""
    info = MeshInfo(namespace="shop", region="eu-north-1", is_local=is_local, options=" --state .asya", version="0")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        console = Console(Guard(port, SECRET), read_page(page_folder()), info, gateway, gateway.redrive)
        server = make_server(console)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        with no_server_faults():
            thread.start()
            try:
                yield page_address(port, SECRET)
            finally:
                server.should_exit = True
                thread.join(timeout=30)
