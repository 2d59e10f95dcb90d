"""The official client of Model Context Protocol, unmodified, against the gateway's function (`protocol §13`, `POST /mcp`)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from tests.doubles.gateway_functions import ALICE, route_event
from tests.doubles.mcp_gateway import ARGUMENTS, McpGateway

MODES = ("auto", "legacy", "2026-07-28")


@asynccontextmanager
async def connected(mcp: McpGateway, mode: str, **more: Any) -> AsyncIterator[Client]:
    """A client whose requests become events of API Gateway."""

    def handle(request: httpx2.Request) -> httpx2.Response:
        event = route_event(f"{request.method} /mcp", ALICE, request.content.decode() or None)
        defaults = {name: value for name, value in event["headers"].items() if name.lower() != "accept"}
        response = mcp.call(event | {"headers": defaults | dict(request.headers)})
        return httpx2.Response(
            response["statusCode"], headers=response["headers"], content=response.get("body", "").encode()
        )

    async with (
        httpx2.AsyncClient(transport=httpx2.MockTransport(handle), headers={"prefer": "wait=3"}) as http,
        Client(
            streamable_http_client("https://gateway.example/mcp", http_client=http), mode=mode, cache=None, **more
        ) as client,
    ):
        yield client


def text(result: Any) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.rule("13.mcp")
@pytest.mark.parametrize("mode", MODES)
def test_a_client_lists_and_calls(mcp: McpGateway, mode: str) -> None:
    async def run() -> None:
        async with connected(mcp, mode) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools][:2] == ["analyse", "quiet"]
            assert tools[0].input_schema["required"] == ["flights"]
            notifications: list[tuple[float, float | None, str | None]] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                notifications.append((progress, total, message))

            mcp.on_wait(lambda: mcp.report("received"), lambda: mcp.report("succeeded", 2, result={"n": 1}))
            result = await client.call_tool("analyse", ARGUMENTS, progress_callback=note)
            assert (result.structured_content, result.is_error) == ({"n": 1}, False)
            assert [percent for percent, _, _ in notifications] == [15, 100]
            wrong = await client.call_tool("analyse", {"flights": 3})
            assert (wrong.is_error, "- flights: " in text(wrong)) == (True, True)
            mcp.on_wait(lambda: mcp.report("failed", 2, reason="Timeout"))
            assert (await client.call_tool("analyse", ARGUMENTS)).is_error
            with pytest.raises(MCPError, match="no tool"):
                await client.call_tool("nothing", {})

    asyncio.run(run())


@pytest.mark.rule("13.mcp.answer")
@pytest.mark.parametrize("mode", MODES)
def test_a_client_waits_for_and_cancels_long_tasks(mcp: McpGateway, mode: str) -> None:
    async def run() -> None:
        async with connected(mcp, mode) as client:
            late = await client.call_tool("analyse", ARGUMENTS)
            assert late.structured_content is not None
            task = {"id": late.structured_content["id"]}
            mcp.on_wait(lambda: mcp.report("succeeded", 2, result={"n": 1}))
            assert (await client.call_tool("wait_for_task", task)).structured_content == {"n": 1}
            second = await client.call_tool("analyse", ARGUMENTS)
            assert second.structured_content is not None
            canceled = await client.call_tool("cancel_task", {"id": second.structured_content["id"]})
            assert canceled.structured_content is not None
            assert canceled.structured_content["status"] == "canceled"

    asyncio.run(run())


@pytest.mark.rule("13.mcp.pause")
def test_the_clients_user_is_asked(mcp: McpGateway) -> None:
    questions: list[str] = []

    async def answer(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        mcp.on_wait(lambda: mcp.report("succeeded", 9, position=2, result={"sent": True}))
        return ElicitResult(action="accept", content={"approved": True})

    async def run() -> None:
        async with connected(mcp, "auto", elicitation_callback=answer) as client:
            mcp.on_wait(mcp.pause)
            assert (await client.call_tool("analyse", ARGUMENTS)).structured_content == {"sent": True}

    asyncio.run(run())
    assert questions == ["Send it?"]


def test_a_client_without_forms_resumes_by_tool(mcp: McpGateway) -> None:
    async def run() -> None:
        async with connected(mcp, "legacy") as client:
            mcp.on_wait(mcp.pause)
            paused = await client.call_tool("analyse", ARGUMENTS)
            assert paused.structured_content is not None
            assert paused.structured_content["status"] == "paused"
            mcp.on_wait(lambda: mcp.report("succeeded", 9, position=2, result={"sent": True}))
            answers = {"id": paused.structured_content["id"], "input": {"approved": True}}
            assert (await client.call_tool("resume_task", answers)).structured_content == {"sent": True}

    asyncio.run(run())
