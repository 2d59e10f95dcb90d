"""Calls canceled by the request's id (Model Context Protocol, `protocol §13`)."""

from typing import Any

import pytest

from asya.gateway.aws.idempotency_keys import IdempotencyKeys
from asya.gateway.mcp.types import REVISIONS
from tests.doubles.gateway_functions import ALICE, BOB
from tests.doubles.mcp_gateway import AT_ONCE, GOOD, LEGACY, McpGateway


@pytest.mark.rule("13.mcp.cancel")
def test_a_request_is_canceled_by_its_id(mcp: McpGateway) -> None:
    session = mcp.in_session
    mcp.use("analyse", GOOD, revision=LEGACY, headers=session | AT_ONCE, id="r1")
    for of, named in (("another", "r1"), (mcp.session, "r2"), (mcp.session, 1), ("", "r1")):
        assert cancel(mcp, named, of) == (202, None)
    assert cancel(mcp, "r1", mcp.session, BOB) == (202, None)
    assert mcp.shown()["status"] == "pending"
    assert cancel(mcp, "r1", mcp.session) == (202, None)
    assert mcp.shown()["status"] == "canceled"
    assert cancel(mcp, "r1", mcp.session) == (202, None)


@pytest.mark.rule("13.mcp.cancel")
def test_a_call_in_flight_ends_when_it_is_canceled(mcp: McpGateway) -> None:
    mcp.then(lambda: mcp.report("received"), lambda: _taken(cancel(mcp, 7, mcp.session)))
    result = mcp.use("analyse", GOOD, revision=LEGACY, headers=mcp.in_session)
    assert (result["isError"], result["structuredContent"]["status"]) == (True, "canceled")
    assert mcp.clock.seconds < 5


@pytest.mark.rule("13.mcp.cancel")
def test_a_cancellation_waits_for_a_request_that_is_on_its_way(mcp: McpGateway) -> None:
    mcp.then(
        lambda: None,
        lambda: _taken(mcp.use("analyse", GOOD, revision=LEGACY, headers=mcp.in_session | AT_ONCE)),
    )
    assert cancel(mcp, 7, mcp.session) == (202, None)
    assert mcp.shown()["status"] == "canceled"


@pytest.mark.rule("13.mcp.cancel")
def test_a_request_that_is_repeated_starts_nothing(mcp: McpGateway) -> None:
    more: Any = {"revision": LEGACY, "headers": mcp.in_session | AT_ONCE}
    first = mcp.use("analyse", GOOD, **more)["structuredContent"]["id"]
    assert mcp.use("analyse", GOOD, **more)["structuredContent"]["id"] == first
    status, content = mcp.ask("tools/call", {"name": "analyse", "arguments": {"flights": "raw/y"}}, **more)
    assert (status, content["error"]["code"]) == (200, -32600)
    assert mcp.use("analyse", GOOD, **more, id=8)["structuredContent"]["id"] != first


def test_what_cannot_be_canceled_is_said(mcp: McpGateway) -> None:
    session = {"mcp-protocol-version": LEGACY, "mcp-session-id": mcp.session}
    wrong = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}
    assert mcp.post(wrong, session)[1]["error"]["code"] == -32602


def test_at_the_newest_revision_ids_name_nothing(mcp: McpGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody_asks(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(IdempotencyKeys, "claim", nobody_asks)
    monkeypatch.setattr(IdempotencyKeys, "task_of", nobody_asks)
    mcp.use("analyse", GOOD, headers=mcp.in_session | AT_ONCE)
    notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    assert mcp.post(notice, {"mcp-protocol-version": REVISIONS[0], "mcp-session-id": mcp.session}) == (202, None)
    assert mcp.shown()["status"] == "pending"


def cancel(mcp: McpGateway, message_id: object, session: str, iam: dict[str, str] = ALICE) -> tuple[int, Any]:
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message_id, "reason": "r"}}
    headers = {"mcp-protocol-version": LEGACY, "mcp-session-id": session}
    return mcp.post(body, headers, iam)


def _taken(_: object) -> None:
    """What is done for its own sake."""
