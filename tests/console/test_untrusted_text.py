"""Text in tasks comes from strangers: it is shown as it is, and no markup in it becomes an element."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.console.sample_mesh import event

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


def poison_parts(gateway: StubGateway, text: str) -> None:
    """Say, keep and log this text on the way of the task, and give it a slice."""
    base = f"/api/v1/mesh/{text}"
    stored = {"text": json.dumps({text: text}), "uri": text, "size": 1}
    hop = {"hop": 0, "actor": text, "generation": 0, "before": True, "after": True, "size": 1}
    gateway.answers[f"{base}/payloads"] = {"items": [hop]}
    gateway.answers[f"{base}/payloads/0"] = {"before": {**stored, "text": "{}"}, "after": stored}
    lines = [{"id": "1", "at": text, "actor": text, "line": text, "worker": text}]
    gateway.answers[f"/api/v1/operations/logs/{text}"] = {"items": lines}
    gateway.answers[f"{base}/children"] = {"items": [{**gateway.tasks[text], "id": "child"}]}
    said = {"actor": text, "position": 0, "attempt": 1, "receive": 1, "sequence": 0, "data": text}
    gateway.events[text] = [event("partial", "1", said), event("final", "2", {})]


@pytest.mark.parametrize("status", ["failed", "paused"])
def test_markup_in_a_task_stays_text(gateway: StubGateway, opened: OpenedPage, status: str) -> None:
    text = " ".join(PAYLOADS)
    gateway.add(text, status, **poisoned(text))
    poison_parts(gateway, text)
    page = opened.open()
    link = page.locator("tr.task td.id a")
    expect(link).to_have_text(text)
    assert page.evaluate(PLANTED) == 0
    link.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(text)
    expect(page.locator("main")).to_contain_text(text)
    expect(page.locator("svg[role=img]")).to_be_attached()
    assert page.evaluate(PLANTED) == 0
    for name in ("Partials", "Payloads", "Logs", "Slices"):
        page.get_by_role("tab", name=name).click()
        shown = json.dumps(text)[1:-1] if name == "Payloads" else text
        expect(page.get_by_role("tabpanel")).to_contain_text(shown)
        assert page.evaluate(PLANTED) == 0
    assert "hacked" not in page.title().replace(text, "")
