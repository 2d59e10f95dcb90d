"""Text in tasks comes from strangers: it is shown as it is, and no markup in it becomes an element."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.console.sample_mesh import event
from tests.console.sample_operations import (
    MESH,
    OPERATIONS,
    actor_details,
    dead_letter,
    letter_page,
    member,
    mesh_numbers,
    numbers,
    run_details,
    run_line,
    run_page,
    usage,
)

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
    shown = [
        {"pointer": text, "text": text, "type": "string"},
        {"pointer": "/a", "text": json.dumps([text, "javascript:alert(1)"]), "type": "array", "cut": True},
        {"pointer": "/b", "text": "javascript:document.title='hacked'", "type": "string"},
    ]
    return {
        "actor": text,
        "tool": text,
        "owner": text,
        "reason": text,
        "error": {"type": text, "message": text, "traceback": text, "mro": [text]},
        "pause": {"prompt": text, "fields": fields, "since": text, "shown": shown},
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


def poison_mesh(gateway: StubGateway, text: str) -> None:
    """Name an actor and a tool with this text, and put it into settings, dead letters and lines."""
    actor = numbers(text, text, dead_letters=1)
    edges = [{"from": text, "to": text, "tool": text}]
    tools = [{"name": text, "route": [text]}]
    gateway.answers[MESH] = {"namespace": text, "at": text, "actors": [actor], "edges": edges, "tools": tools}
    policy = {**actor_details()["policies"]["wrong"], "backoff": text, "max_attempts": 2, "then_route": [text]}
    error = {"id": text, "at": text, "reason": text, "type": text, "message": text}
    base = f"{OPERATIONS}/actors/{text}"
    gateway.answers[base] = {
        **actor_details(),
        "numbers": actor,
        "frames": text,
        "can_send_to": [text],
        "secrets": [text],
        "access": [{"kind": text, "name": text, "location": text, "read": [text], "write": [text]}],
        "policies": {text: policy},
        "rules": [{"errors": [text], "policy": text}],
        "recent_errors": [error],
    }
    gateway.answers[f"{base}/logs"] = {"items": [{"id": "1", "at": text, "actor": text, "line": text}]}
    letter = {"id": text, "actor": text, "sent_at": text, "task": text, "reason": text, "body": text}
    plain = dead_letter(1, **letter, error={"type": text, "message": text})
    wrapped = dead_letter(2, **letter | {"body": json.dumps({text: text})})
    gateway.answers[f"{OPERATIONS}/dead-letters"] = letter_page(plain, wrapped)


@pytest.mark.parametrize("text", PAYLOADS)
def test_markup_in_the_mesh_stays_text(gateway: StubGateway, opened: OpenedPage, text: str) -> None:
    poison_mesh(gateway, text)
    page = opened.open("#/mesh")
    node = page.get_by_role("group", name="Graph of the mesh").get_by_role("link")
    expect(node).to_contain_text(text)
    assert page.evaluate(PLANTED) == 0
    node.press("Enter")
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text(f"{text}: {text}")
    assert page.evaluate(PLANTED) == 0
    page.get_by_role("tab", name="Dead letters").click()
    expect(panel.locator("pre").first).to_have_text(text)
    expect(panel.locator("pre").last).to_contain_text(json.dumps(text))
    assert page.evaluate(PLANTED) == 0
    page.get_by_role("tab", name="Logs").click()
    expect(panel.get_by_role("listitem")).to_contain_text(text)
    assert page.evaluate(PLANTED) == 0
    assert "hacked" not in page.title().replace(text, "")


def poison_runs(gateway: StubGateway, text: str) -> None:
    """Put this text into a run, its envelopes, stages and lines."""
    gateway.answers[MESH] = mesh_numbers()
    line = run_line(1, text, run_id=text, actor=text, formed_at=text, usage=usage(), dollars=1.0)
    gateway.answers[f"{OPERATIONS}/runs"] = {**run_page(line), "prices": text}
    texts = ("actor", "state", "job_run_id", "details", "verdict", "prices", "shared", "problem", "log_uri")
    stage = {"stage": 1, "name": text, "tasks": 2, "done": 1}
    beat = {"at": text, "beat": 1, "done": 0, "stages": [stage], "executors": 1}
    members = [member(1, text, id=text, error=text)]
    details = run_details(**dict.fromkeys(texts, text), run_id=text, heartbeat=beat, members=members)
    gateway.answers[f"{OPERATIONS}/runs/{text}"] = details
    log = {"id": "1", "actor": text, "line": text, "worker": text, "stream": text}
    gateway.answers[f"{OPERATIONS}/runs/{text}/logs"] = {"items": [log]}


@pytest.mark.parametrize("text", PAYLOADS)
def test_markup_in_runs_stays_text(gateway: StubGateway, opened: OpenedPage, text: str) -> None:
    poison_runs(gateway, text)
    page = opened.open("#/runs")
    expect(page.get_by_role("row")).to_have_count(2)
    assert page.evaluate(PLANTED) == 0
    page.get_by_role("rowheader").get_by_role("link").click()
    expect(page.get_by_role("region", name="Spark stages")).to_contain_text(text)
    expect(page.locator("td.error")).to_have_text(text)
    assert page.evaluate(PLANTED) == 0
    page.get_by_role("tab", name="Logs").click()
    expect(page.get_by_role("tabpanel").get_by_role("listitem")).to_contain_text(text)
    assert page.evaluate(PLANTED) == 0
    assert "hacked" not in page.title().replace(text, "")
