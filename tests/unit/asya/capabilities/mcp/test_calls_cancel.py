"""Calls canceled by the id of their request (Model Context Protocol, `protocol §13`)."""

from typing import Any

import pytest

from asya.capabilities.mcp.types import REVISIONS
from asya.tasks.starts.aws.idempotency_keys import IdempotencyKeys
from tests.doubles.gateway_functions import ALICE, BOB
from tests.doubles.mcp_gateway import ARGUMENTS, LEGACY, NO_WAIT, McpGateway


@pytest.mark.rule("13.mcp.cancel")
def test_a_request_is_canceled_by_its_id(mcp: McpGateway) -> None:
    session = mcp.session_header
    mcp.call_tool("analyse", ARGUMENTS, revision=LEGACY, headers=session | NO_WAIT, id="r1")
    for session_id, request_id in (("another", "r1"), (mcp.session, "r2"), (mcp.session, 1), ("", "r1")):
        assert cancel(mcp, request_id, session_id) == (202, None)
    assert cancel(mcp, "r1", mcp.session, BOB) == (202, None)
    assert mcp.view()["status"] == "pending"
    assert cancel(mcp, "r1", mcp.session) == (202, None)
    assert mcp.view()["status"] == "canceled"
    assert cancel(mcp, "r1", mcp.session) == (202, None)


@pytest.mark.rule("13.mcp.cancel")
def test_a_call_in_flight_ends_when_it_is_canceled(mcp: McpGateway) -> None:
    mcp.on_wait(lambda: mcp.report("received"), lambda: _taken(cancel(mcp, 7, mcp.session)))
    result = mcp.call_tool("analyse", ARGUMENTS, revision=LEGACY, headers=mcp.session_header)
    assert (result["isError"], result["structuredContent"]["status"]) == (True, "canceled")
    assert mcp.clock.seconds < 5


@pytest.mark.rule("13.mcp.cancel")
def test_a_cancellation_waits_for_a_request_that_is_on_its_way(mcp: McpGateway) -> None:
    mcp.on_wait(
        lambda: None,
        lambda: _taken(mcp.call_tool("analyse", ARGUMENTS, revision=LEGACY, headers=mcp.session_header | NO_WAIT)),
    )
    assert cancel(mcp, 7, mcp.session) == (202, None)
    assert mcp.view()["status"] == "canceled"


@pytest.mark.rule("13.mcp.cancel")
def test_a_request_that_is_repeated_starts_nothing(mcp: McpGateway) -> None:
    more: Any = {"revision": LEGACY, "headers": mcp.session_header | NO_WAIT}
    first = mcp.call_tool("analyse", ARGUMENTS, **more)["structuredContent"]["id"]
    assert mcp.call_tool("analyse", ARGUMENTS, **more)["structuredContent"]["id"] == first
    status, content = mcp.request("tools/call", {"name": "analyse", "arguments": {"flights": "raw/y"}}, **more)
    assert (status, content["error"]["code"]) == (200, -32600)
    assert mcp.call_tool("analyse", ARGUMENTS, **more, id=8)["structuredContent"]["id"] != first


def test_an_invalid_cancellation_is_an_error(mcp: McpGateway) -> None:
    session = {"mcp-protocol-version": LEGACY, "mcp-session-id": mcp.session}
    wrong = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}
    assert mcp.post(wrong, session)[1]["error"]["code"] == -32602


def test_request_ids_of_the_newest_revision_cancel_nothing(mcp: McpGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(IdempotencyKeys, "claim", refuse)
    monkeypatch.setattr(IdempotencyKeys, "task_of", refuse)
    mcp.call_tool("analyse", ARGUMENTS, headers=mcp.session_header | NO_WAIT)
    notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    assert mcp.post(notification, {"mcp-protocol-version": REVISIONS[0], "mcp-session-id": mcp.session}) == (202, None)
    assert mcp.view()["status"] == "pending"


def cancel(mcp: McpGateway, message_id: object, session: str, iam: dict[str, str] = ALICE) -> tuple[int, Any]:
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message_id, "reason": "r"}}
    headers = {"mcp-protocol-version": LEGACY, "mcp-session-id": session}
    return mcp.post(body, headers, iam)


def _taken(_: object) -> None:
    """What is done for its own sake."""
