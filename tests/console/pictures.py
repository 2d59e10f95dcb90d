"""Takes the pictures of the console in docs/images: `python -m tests.console.pictures`."""

from __future__ import annotations

from tests.console.browser import OpenedPage, running_browser, running_console
from tests.console.sample_mesh import FAILED, ORIGIN, PAUSED, fill
from tests.console.sample_operations import RUN
from tests.console.stub_gateway import StubGateway
from tests.paths import PROJECT

FOLDER = PROJECT / "docs" / "images"
SIZE = (1000, 640)
PICTURES = {
    "console-tasks": ("#/tasks", "6 ×"),
    "console-task": (f"#/tasks/{FAILED}", "3 attempts"),
    "console-hops": (f"#/tasks/{FAILED}?show=hops", "attempt 3"),
    "console-payloads": (f"#/tasks/{FAILED}?show=payloads&hop=0", "Difference"),
    "console-slices": (f"#/tasks/{ORIGIN}?show=children", "12 children"),
    "console-pause": (f"#/tasks/{PAUSED}", "ship-order"),
    "console-mesh": ("#/mesh", "1 run ·"),
    "console-actor": ("#/mesh/price-order", "Recent errors"),
    "console-run": (f"#/runs/{RUN}", "The driver's log"),
}
"""Each picture: its view, and a text that it waits for."""


def main() -> None:
    """Take all pictures."""
    FOLDER.mkdir(exist_ok=True)
    gateway = StubGateway()
    fill(gateway)
    with running_browser() as browser, running_console(gateway) as address:
        opened = OpenedPage.of(browser, address, *SIZE)
        page = opened.open()
        for name, (view, text) in PICTURES.items():
            page.evaluate("view => { location.hash = view }", view)
            page.get_by_text(text).first.wait_for()
            page.wait_for_load_state("networkidle" if name != "console-tasks" else "load")
            page.screenshot(path=FOLDER / f"{name}.png")
            print(FOLDER / f"{name}.png")
        opened.close()


if __name__ == "__main__":
    main()
