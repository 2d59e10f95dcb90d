"""The result of a tool call for a task without a result (`protocol §13`, `POST /mcp`)."""

import msgspec
import pytest
from msgspec.structs import replace

from asya.capabilities.mcp.results import TaskLinks, tool_result
from asya.capabilities.mcp.types import TextContent
from asya.tasks.view import TaskView, unknown_view

LINKS = TaskLinks("https://gateway.example/t", "https://gateway.example/t/events")
TASK = unknown_view("t", "AIDAALICE", "2026-11-20T09:00:00.000000Z")


@pytest.mark.parametrize(
    ("task", "text", "is_error"),
    [
        (TASK, "cannot be read now", True),
        (replace(TASK, status="succeeded"), "has succeeded without a result", False),
        (replace(TASK, status="pending"), "to wait for its result", False),
        (replace(TASK, status="paused"), "to wait for its result", False),
        (replace(TASK, status="failed"), "failed (no reason given).", True),
    ],
)
def test_every_status_has_a_text(task: TaskView, text: str, is_error: bool) -> None:
    result = tool_result(task, LINKS, is_modern=True)
    [content] = result.content
    assert isinstance(content, TextContent)
    assert text in content.text
    assert result.is_error is is_error
    state = msgspec.json.decode(msgspec.json.encode(result))["structuredContent"]
    assert (state["id"], state["status_url"]) == ("t", LINKS.status_url)
