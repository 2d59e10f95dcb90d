"""Tools that pause (Model Context Protocol, `protocol §13`): by a form, or by text that explains `resume_task`."""

from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause, PauseField, ShownValue
from tests.doubles.gateway_functions import BOB
from tests.doubles.mcp_gateway import APPROVE, ARGUMENTS, McpGateway

ELICITATION: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}


@pytest.mark.rule("13.mcp.pause")
def test_a_paused_task_explains_how_to_resume_it(mcp: McpGateway) -> None:
    mcp.on_wait(mcp.pause)
    result = mcp.call_tool("analyse", ARGUMENTS)
    state = result["structuredContent"]
    assert "isError" not in result
    assert (state["status"], state["pause"]["prompt"]) == ("paused", "Send it?")
    text = result["content"][0]["text"]
    assert "Send it?" in text
    assert "- approved (boolean): Go on?" in text
    since = state["pause"]["since"]
    assert f'resume_task with {{"id": "{state["id"]}", "since": "{since}", "input": {{…}}}}' in text
    earlier = {"id": state["id"], "since": "2026-01-01T00:00:00.000000Z", "input": {"approved": True}}
    refused = mcp.call_tool("resume_task", earlier)
    assert (refused["isError"], "is in a later pause" in refused["content"][0]["text"]) == (True, True)
    wrong = mcp.call_tool("resume_task", {"id": state["id"], "input": {"approved": "perhaps"}})
    assert (wrong["isError"], "approved: should be true or false" in wrong["content"][0]["text"]) == (True, True)
    mcp.on_wait(lambda: mcp.report("succeeded", 9, position=2, result={"sent": True}))
    resumed = mcp.call_tool("resume_task", {"id": state["id"], "since": since, "input": {"approved": True}})
    assert resumed["structuredContent"] == {"sent": True}
    assert "is no longer paused" in mcp.call_tool("resume_task", {"id": state["id"], "input": {}})["content"][0]["text"]


@pytest.mark.rule("11.pause.shown-to")
def test_a_paused_task_shows_values_of_the_payload(mcp: McpGateway) -> None:
    shown = (ShownValue(pointer="/total", text="3544790567247868102", type="number"), ShownValue(pointer="/note"))
    mcp.on_wait(lambda: mcp.pause(shown=shown))
    question = mcp.call_tool("analyse", ARGUMENTS, params=ELICITATION)
    message = question["inputRequests"]["pause"]["params"]["message"]
    assert message == "Send it?\n/total: 3544790567247868102\n/note: (missing)"
    text = mcp.call_tool("wait_for_task", {"id": mcp.task_id()})["content"][0]["text"]
    assert "Send it?\n/total: 3544790567247868102\n/note: (missing)\nCall resume_task" in text


def answer(mcp: McpGateway, question: Any, response: object, **more: Any) -> Any:
    params = {"requestState": question["requestState"], "inputResponses": {"pause": response}} | ELICITATION
    return mcp.call_tool("analyse", ARGUMENTS, params=params, **more)


@pytest.mark.rule("13.mcp.pause")
def test_clients_with_forms_get_the_question(mcp: McpGateway) -> None:
    mcp.on_wait(mcp.pause)
    question = mcp.call_tool("analyse", ARGUMENTS, params=ELICITATION)
    assert question["resultType"] == "input_required"
    assert question["inputRequests"] == {
        "pause": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Send it?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"approved": {"title": "approved", "type": "boolean", "description": "Go on?"}},
                    "required": ["approved"],
                },
            },
        }
    }
    for response in ({"action": "decline"}, {"action": "cancel"}):
        assert answer(mcp, question, response)["structuredContent"]["status"] == "paused"
    again = answer(mcp, question, {"action": "accept", "content": {"approved": "perhaps"}})
    assert again["resultType"] == "input_required"
    assert "should be true or false" in again["inputRequests"]["pause"]["params"]["message"]
    assert mcp.view()["status"] == "paused"
    yes = {"action": "accept", "content": {"approved": True, "left": None}}
    mcp.on_wait(lambda: mcp.report("succeeded", 9, position=2, result={"sent": True}))
    assert answer(mcp, again, yes)["structuredContent"] == {"sent": True}
    [sent] = mcp.gateway.messages("x-resume")
    assert sent["headers"]["x-asya-resume-input"] == {"approved": True}
    # A client repeats its answer after a lost response: the task does not change.
    assert answer(mcp, again, yes)["structuredContent"] == {"sent": True}
    assert mcp.gateway.messages("x-resume") == []


@pytest.mark.rule("13.mcp.pause")
def test_an_answer_counts_for_one_pause_only(mcp: McpGateway) -> None:
    mcp.on_wait(mcp.pause)
    question = mcp.call_tool("analyse", ARGUMENTS, params=ELICITATION)
    yes = {"action": "accept", "content": {"approved": True}}
    mcp.on_wait(lambda: mcp.pause(3, 2.0))
    second = answer(mcp, question, yes)
    assert second["resultType"] == "input_required"
    assert second["requestState"] != question["requestState"]
    repeated = answer(mcp, question, yes)
    assert repeated["requestState"] == second["requestState"]
    assert mcp.view()["status"] == "paused"


@pytest.mark.rule("13.mcp.pause")
def test_only_the_owner_answers(mcp: McpGateway) -> None:
    mcp.on_wait(mcp.pause)
    question = mcp.call_tool("analyse", ARGUMENTS, params=ELICITATION)
    yes = {"action": "accept", "content": {"approved": True}}
    assert "there is no task" in answer(mcp, question, yes, iam=BOB)["content"][0]["text"]
    for state in ("", " ", "nothing", "a" * 400 + " x"):
        assert answer(mcp, {"requestState": state}, yes)["isError"] is True
    assert mcp.view()["status"] == "paused"


@pytest.mark.parametrize(
    ("fields", "properties"),
    [
        ((), {}),
        (
            (PauseField(name="n", type="number", options=(1, 2), default=1, required=True),),
            {"n": {"title": "n", "type": "number", "description": " (one of [1,2])", "default": 1}},
        ),
        (
            (PauseField(name="s", type="string", options=("a", "b"), required=False),),
            {"s": {"title": "s", "type": "string", "enum": ["a", "b"]}},
        ),
        (
            (PauseField(name="l", type="array", options=("a", "b")),),
            {"l": {"title": "l", "type": "array", "items": {"type": "string", "enum": ["a", "b"]}}},
        ),
        ((PauseField(name="l", type="array"),), None),
        ((PauseField(name="o", type="object", prompt="What?", required=False),), None),
    ],
)
def test_fields_that_no_form_supports_are_described_in_text(
    mcp: McpGateway, fields: tuple[PauseField, ...], properties: Any
) -> None:
    spec: Actor = changed(APPROVE, pause=Pause(prompt="P", fields=fields))
    mcp.on_wait(lambda: mcp.pause(spec=spec))
    result = mcp.call_tool("analyse", ARGUMENTS, params=ELICITATION)
    if properties is None:
        assert result["structuredContent"]["pause"]["prompt"] == "P"
        assert f"- {fields[0].name} ({fields[0].type}" in result["content"][0]["text"]
    else:
        form = result["inputRequests"]["pause"]["params"]["requestedSchema"]
        assert form["properties"] == properties
        assert form["required"] == [each.name for each in fields if each.required and each.default is None]


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"elicitation": True}])
def test_clients_without_forms_get_text(mcp: McpGateway, capabilities: dict[str, Any]) -> None:
    mcp.on_wait(mcp.pause)
    params = {"_meta": {"io.modelcontextprotocol/clientCapabilities": capabilities}}
    assert mcp.call_tool("analyse", ARGUMENTS, params=params)["structuredContent"]["status"] == "paused"
