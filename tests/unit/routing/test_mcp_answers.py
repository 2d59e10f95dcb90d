"""What a call of a tool says of a task that gave nothing (`protocol §13`, `POST /mcp`)."""

import msgspec
import pytest
from msgspec.structs import replace

from asya.protocol.mcp import Text
from asya.protocol.task_view import TaskView, unknown
from asya.routing.mcp_answers import Places, answer_of

PLACES = Places("https://gateway.example/t", "https://gateway.example/t/events")
TASK = unknown("t", "AIDAALICE", "2026-11-20T09:00:00.000000Z")


@pytest.mark.parametrize(
    ("task", "said", "is_error"),
    [
        (TASK, "cannot be read just now", True),
        (replace(TASK, status="succeeded"), "has succeeded, without a result", False),
        (replace(TASK, status="pending"), "takes longer", False),
        (replace(TASK, status="paused"), "takes longer", False),
        (replace(TASK, status="failed"), "failed (for no known reason).", True),
    ],
)
def test_whatever_the_task_the_model_is_told(task: TaskView, said: str, is_error: bool) -> None:
    result = answer_of(task, PLACES, is_modern=True)
    [content] = result.content
    assert isinstance(content, Text)
    assert said in content.text
    assert result.is_error is is_error
    state = msgspec.json.decode(msgspec.json.encode(result))["structuredContent"]
    assert (state["id"], state["status_url"]) == ("t", PLACES.status_url)
