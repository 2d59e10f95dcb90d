"""Text in tasks comes from strangers: it is shown as it is, and no markup in it becomes an element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from tests.console.browser import OpenedPage
    from tests.console.stub_gateway import StubGateway

PAYLOADS = (
    "<img src=x onerror=\"document.title='hacked'\">",
    "<script>document.title='hacked'</script>",
    '"><svg onload="document.title=\'hacked\'">',
    "javascript:document.title='hacked'",
    "{{constructor.constructor('document.title=1')()}}",
)
PLANTED = "document.querySelectorAll('main img, main script, main svg[onload], main [onerror], main a[href^=\"java\"]').length"


def poisoned(text: str) -> dict[str, object]:
    """A task with this text in each of its fields."""
    fields = [{"name": text, "type": "string", "prompt": text, "options": [text, "b"]}]
    return {
        "actor": text,
        "tool": text,
        "owner": text,
        "reason": text,
        "error": {"type": text, "message": text, "traceback": text, "mro": [text]},
        "pause": {"prompt": text, "fields": fields, "since": text},
        "problem": {"type": text, "message": text},
        "route": {"prev": [text], "curr": text, "next": [text]},
        "result": {text: text},
        "result_uri": text,
        "parent_id": text,
        "root_id": text,
    }


@pytest.mark.parametrize("text", PAYLOADS)
@pytest.mark.parametrize("status", ["failed", "paused"])
def test_markup_in_a_task_stays_text(gateway: StubGateway, opened: OpenedPage, text: str, status: str) -> None:
    gateway.add(text, status, **poisoned(text))
    page = opened.open()
    link = page.locator("tr.task td.id a")
    expect(link).to_have_text(text)
    assert page.evaluate(PLANTED) == 0
    link.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(text)
    expect(page.locator("main")).to_contain_text(text)
    assert page.evaluate(PLANTED) == 0
    assert "hacked" not in page.title().replace(text, "")
