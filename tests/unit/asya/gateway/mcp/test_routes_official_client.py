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

from tests.doubles.gateway_functions import ALICE, calling
from tests.doubles.mcp_gateway import GOOD, McpGateway

MODES = ("auto", "legacy", "2026-07-28")


@asynccontextmanager
async def connected(mcp: McpGateway, mode: str, **more: Any) -> AsyncIterator[Client]:
    """A client whose requests arrive as API Gateway's events."""

    def handle(request: httpx2.Request) -> httpx2.Response:
        event = calling(f"{request.method} /mcp", ALICE, request.content.decode() or None)
        known = {name: value for name, value in event["headers"].items() if name.lower() != "accept"}
        response = mcp.call(event | {"headers": known | dict(request.headers)})
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
            told: list[tuple[float, float | None, str | None]] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                told.append((progress, total, message))

            mcp.then(lambda: mcp.report("received"), lambda: mcp.report("succeeded", 2, result={"n": 1}))
            result = await client.call_tool("analyse", GOOD, progress_callback=note)
            assert (result.structured_content, result.is_error) == ({"n": 1}, False)
            assert [reached for reached, _, _ in told] == [15, 100]
            wrong = await client.call_tool("analyse", {"flights": 3})
            assert (wrong.is_error, "- flights: " in text(wrong)) == (True, True)
            mcp.then(lambda: mcp.report("failed", 2, reason="Timeout"))
            assert (await client.call_tool("analyse", GOOD)).is_error
            with pytest.raises(MCPError, match="no tool"):
                await client.call_tool("nothing", {})

    asyncio.run(run())


@pytest.mark.rule("13.mcp.answer")
@pytest.mark.parametrize("mode", MODES)
def test_a_client_goes_on_with_what_takes_longer(mcp: McpGateway, mode: str) -> None:
    async def run() -> None:
        async with connected(mcp, mode) as client:
            late = await client.call_tool("analyse", GOOD)
            assert late.structured_content is not None
            task = {"id": late.structured_content["id"]}
            mcp.then(lambda: mcp.report("succeeded", 2, result={"n": 1}))
            assert (await client.call_tool("wait_for_task", task)).structured_content == {"n": 1}
            second = await client.call_tool("analyse", GOOD)
            assert second.structured_content is not None
            canceled = await client.call_tool("cancel_task", {"id": second.structured_content["id"]})
            assert canceled.structured_content is not None
            assert canceled.structured_content["status"] == "canceled"

    asyncio.run(run())


@pytest.mark.rule("13.mcp.pause")
def test_a_clients_person_is_asked(mcp: McpGateway) -> None:
    asked: list[str] = []

    async def answer(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        mcp.then(lambda: mcp.report("succeeded", 9, result={"sent": True}))
        return ElicitResult(action="accept", content={"approved": True})

    async def run() -> None:
        async with connected(mcp, "auto", elicitation_callback=answer) as client:
            mcp.then(mcp.pause)
            assert (await client.call_tool("analyse", GOOD)).structured_content == {"sent": True}

    asyncio.run(run())
    assert asked == ["Send it?"]


def test_a_client_without_a_person_is_told_how_it_goes_on(mcp: McpGateway) -> None:
    async def run() -> None:
        async with connected(mcp, "legacy") as client:
            mcp.then(mcp.pause)
            paused = await client.call_tool("analyse", GOOD)
            assert paused.structured_content is not None
            assert paused.structured_content["status"] == "paused"
            mcp.then(lambda: mcp.report("succeeded", 9, result={"sent": True}))
            answers = {"id": paused.structured_content["id"], "input": {"approved": True}}
            assert (await client.call_tool("resume_task", answers)).structured_content == {"sent": True}

    asyncio.run(run())
