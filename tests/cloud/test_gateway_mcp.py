"""protocol §13 on the deployed mesh, IAM enforced: the unmodified official client of Model Context Protocol."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import runpy
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import boto3
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from tests.cloud.deployed_cloud import until
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp.client import ClientRequestContext

    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

_EXAMPLE = re.compile(r"^```python\n(# mcp_client\.py\n.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The client in the gateway's reference."""
    return read_example(tmp_path_factory.mktemp("mcp"))


def read_example(folder: Path) -> dict[str, Any]:
    match = _EXAMPLE.search((PROJECT / "docs" / "reference" / "gateway.md").read_text())
    assert match is not None
    path = folder / "mcp_client.py"
    path.write_text(match[1])
    return runpy.run_path(str(path))


def session_of(caller: ApiCaller) -> boto3.Session:
    assert caller.credentials is not None
    return boto3.Session(caller.credentials.access_key, caller.credentials.secret_key, region_name=caller.region)


@contextlib.asynccontextmanager
async def connected(
    example: dict[str, Any], caller: ApiCaller, mode: str = "auto", wait: int = 25, **more: Any
) -> AsyncIterator[Client]:
    auth = example["SigV4"](session_of(caller))
    headers = {"prefer": f"wait={wait}"}
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60, headers=headers, transport=caller.transport(httpx2)) as http,
        Client(streamable_http_client(f"{caller.url}/mcp", http_client=http), mode=mode, **more) as client,
    ):
        yield client


async def ended(client: Client, result: Any) -> Any:
    """Waits for the result of a call, which may take longer than one answer on a busy machine."""
    for _ in range(4):
        state = result.structured_content or {}
        if "status_url" not in state or state["status"] not in ("pending", "running"):
            break
        result = await client.call_tool("wait_for_task", {"id": state["id"]})
    return result


def text(result: Any) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.rule("13.mcp.tools")
def test_the_documented_client_runs_a_pipeline(
    example: dict[str, Any], alice: ApiCaller, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hers = session_of(alice)
    monkeypatch.setattr(boto3, "Session", lambda: hers)
    asyncio.run(example["main"](alice.url, "say", text="hello"))
    output = capsys.readouterr().out
    assert "tools: ask rest say cancel_task resume_task wait_for_task\n" in output
    if "status_url" not in output:  # otherwise the machine is busy
        assert output.endswith("{'text': 'hello'}\n")
        assert "\n100 %: succeeded at echo\n" in output


@pytest.mark.rule("13.mcp", "13.mcp.failures", "13.mcp.progress")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_calls_succeed_and_fail(example: dict[str, Any], alice: ApiCaller, mode: str) -> None:
    async def run() -> None:
        async with connected(example, alice, mode) as client:
            assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
            percents: list[float] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                percents.append(progress)

            done = await client.call_tool("say", {"text": "hello"}, progress_callback=note)
            assert percents == sorted(set(percents))
            assert percents != [] or "status_url" in done.structured_content
            assert (await ended(client, done)).structured_content == {"text": "hello"}
            wrong = await client.call_tool("say", {"text": "", "times": 0})
            assert wrong.is_error
            assert [line.partition(":")[0] for line in text(wrong).splitlines()[1:]] == ["- text", "- times"]
            failed = await ended(client, await client.call_tool("rest", {"seconds": "long"}))
            assert failed.is_error
            assert "TypeError" in text(failed)

    asyncio.run(run())


@pytest.mark.rule("13.mcp.cancel")
def test_a_call_is_canceled_by_its_client(
    example: dict[str, Any], gateway: DeployedCloud, alice: ApiCaller, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that cancels a call within a session notifies the gateway, which finds the task."""
    caplog.set_level(logging.DEBUG, "mcp")

    def newest() -> Any:
        return next(iter(alice.call("GET", "/api/v1/mesh", limit="1")[1]["items"]), {"id": None})

    before, go_on = newest()["id"], f"go/{uuid4()}"

    async def run() -> Any:
        async with connected(example, alice, "legacy") as client:
            call = asyncio.create_task(client.call_tool("rest", {"until": go_on}))
            await asyncio.to_thread(until, lambda: True if newest()["id"] != before else None, "the task to be there")
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
            canceled = await asyncio.to_thread(
                until,
                lambda: task if (task := newest())["id"] != before and task["status"] == "canceled" else None,
                "the task to be canceled",
            )
            # The canceled call still gets an answer; a client that is closed before it fails.
            await asyncio.to_thread(until, lambda: "late request id" in caplog.text or None, "the call's answer")
            return canceled

    assert asyncio.run(run())["reason"] == "Canceled"
    gateway.mesh.upload(go_on, b"now")


@pytest.mark.rule("13.mcp.answer", "13.mcp.owner")
def test_a_long_task_is_awaited_and_canceled_by_tools(
    example: dict[str, Any], gateway: DeployedCloud, alice: ApiCaller, bob: ApiCaller
) -> None:
    first, other = (f"go/{uuid4()}" for _ in range(2))

    async def run() -> None:
        async with connected(example, alice, wait=1) as hers, connected(example, bob) as his:
            late = await hers.call_tool("rest", {"until": first})
            assert not late.is_error
            state = late.structured_content
            assert state["status"] in ("pending", "running")
            task = {"id": state["id"]}
            assert (await his.call_tool("wait_for_task", task)).is_error
            assert (await his.call_tool("cancel_task", task)).is_error
            gateway.mesh.upload(first, b"now")
            result = late
            for _ in range(60):
                result = await hers.call_tool("wait_for_task", task)
                if "status_url" not in result.structured_content:
                    break
            assert result.structured_content == {"until": first}
            second = await hers.call_tool("rest", {"until": other})
            gone = await hers.call_tool("cancel_task", {"id": second.structured_content["id"]})
            assert gone.structured_content["status"] == "canceled"

    asyncio.run(run())
    gateway.mesh.upload(other, b"now")


@pytest.mark.rule("13.mcp.pause")
def test_a_call_continues_after_the_users_answer(example: dict[str, Any], alice: ApiCaller) -> None:
    questions: list[str] = []

    async def answer(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={})

    async def run() -> None:
        async with connected(example, alice, elicitation_callback=answer) as client:
            done = await client.call_tool("ask", {"text": "may I?"})
            assert (await ended(client, done)).structured_content == {"text": "may I?"}

    asyncio.run(run())
    assert questions == ["Task paused\n/text: may I?"]
