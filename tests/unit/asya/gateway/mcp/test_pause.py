"""Tools that pause (Model Context Protocol, `protocol §13`): a client's person is asked, or told how it goes on."""

from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause, PauseField
from tests.doubles.gateway_functions import BOB
from tests.doubles.mcp_gateway import APPROVE, GOOD, McpGateway

ASKS: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}


@pytest.mark.rule("13.mcp.pause")
def test_a_paused_task_says_how_it_goes_on(mcp: McpGateway) -> None:
    mcp.then(mcp.pause)
    result = mcp.use("analyse", GOOD)
    state = result["structuredContent"]
    assert "isError" not in result
    assert (state["status"], state["pause"]["prompt"]) == ("paused", "Send it?")
    text = result["content"][0]["text"]
    assert "Send it?" in text
    assert "- approved (boolean): Go on?" in text
    assert f'resume_task with {{"id": "{state["id"]}", "input": {{…}}}}' in text
    wrong = mcp.use("resume_task", {"id": state["id"], "input": {"approved": "perhaps"}})
    assert (wrong["isError"], "approved: should be true or false" in wrong["content"][0]["text"]) == (True, True)
    mcp.then(lambda: mcp.report("succeeded", 9, result={"sent": True}))
    resumed = mcp.use("resume_task", {"id": state["id"], "input": {"approved": True}})
    assert resumed["structuredContent"] == {"sent": True}
    assert "is no longer paused" in mcp.use("resume_task", {"id": state["id"], "input": {}})["content"][0]["text"]


def answer(mcp: McpGateway, asked: Any, said: object, **more: Any) -> Any:
    params = {"requestState": asked["requestState"], "inputResponses": {"pause": said}} | ASKS
    return mcp.use("analyse", GOOD, params=params, **more)


@pytest.mark.rule("13.mcp.pause")
def test_clients_that_ask_their_person_are_given_the_question(mcp: McpGateway) -> None:
    mcp.then(mcp.pause)
    asked = mcp.use("analyse", GOOD, params=ASKS)
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"] == {
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
    for said in ({"action": "decline"}, {"action": "cancel"}):
        assert answer(mcp, asked, said)["structuredContent"]["status"] == "paused"
    again = answer(mcp, asked, {"action": "accept", "content": {"approved": "perhaps"}})
    assert again["resultType"] == "input_required"
    assert "should be true or false" in again["inputRequests"]["pause"]["params"]["message"]
    assert mcp.shown()["status"] == "paused"
    yes = {"action": "accept", "content": {"approved": True, "left": None}}
    mcp.then(lambda: mcp.report("succeeded", 9, result={"sent": True}))
    assert answer(mcp, again, yes)["structuredContent"] == {"sent": True}
    [sent] = mcp.gateway.messages("x-resume")
    assert sent["headers"]["x-asya-resume-input"] == {"approved": True}
    # The same answer once more, because its own answer was lost: the task is what it is.
    assert answer(mcp, again, yes)["structuredContent"] == {"sent": True}
    assert mcp.gateway.messages("x-resume") == []


@pytest.mark.rule("13.mcp.pause")
def test_an_answer_is_to_one_pause_only(mcp: McpGateway) -> None:
    mcp.then(mcp.pause)
    asked = mcp.use("analyse", GOOD, params=ASKS)
    yes = {"action": "accept", "content": {"approved": True}}
    mcp.then(lambda: mcp.pause(3, 2.0))
    second = answer(mcp, asked, yes)
    assert second["resultType"] == "input_required"
    assert second["requestState"] != asked["requestState"]
    repeated = answer(mcp, asked, yes)
    assert repeated["requestState"] == second["requestState"]
    assert mcp.shown()["status"] == "paused"


@pytest.mark.rule("13.mcp.pause")
def test_only_the_owner_answers(mcp: McpGateway) -> None:
    mcp.then(mcp.pause)
    asked = mcp.use("analyse", GOOD, params=ASKS)
    yes = {"action": "accept", "content": {"approved": True}}
    assert "there is no task" in answer(mcp, asked, yes, iam=BOB)["content"][0]["text"]
    for state in ("", " ", "nothing", "a" * 400 + " x"):
        assert answer(mcp, {"requestState": state}, yes)["isError"] is True
    assert mcp.shown()["status"] == "paused"


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
def test_what_a_form_has_no_room_for_is_said_in_words(
    mcp: McpGateway, fields: tuple[PauseField, ...], properties: Any
) -> None:
    spec: Actor = changed(APPROVE, pause=Pause(prompt="P", fields=fields))
    mcp.then(lambda: mcp.pause(spec=spec))
    result = mcp.use("analyse", GOOD, params=ASKS)
    if properties is None:
        assert result["structuredContent"]["pause"]["prompt"] == "P"
        assert f"- {fields[0].name} ({fields[0].type}" in result["content"][0]["text"]
    else:
        form = result["inputRequests"]["pause"]["params"]["requestedSchema"]
        assert form["properties"] == properties
        assert form["required"] == [each.name for each in fields if each.required and each.default is None]


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"elicitation": True}])
def test_clients_that_ask_nobody_are_told_in_words(mcp: McpGateway, capabilities: dict[str, Any]) -> None:
    mcp.then(mcp.pause)
    params = {"_meta": {"io.modelcontextprotocol/clientCapabilities": capabilities}}
    assert mcp.use("analyse", GOOD, params=params)["structuredContent"]["status"] == "paused"
