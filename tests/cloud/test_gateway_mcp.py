"""protocol §13 on the deployed mesh, IAM enforced: models' clients. The official client, unmodified, as the guide shows it."""

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
    """The guide's client."""
    found = _EXAMPLE.search((PROJECT / "docs" / "reference" / "gateway.md").read_text())
    assert found is not None
    path: Path = tmp_path_factory.mktemp("mcp") / "mcp_client.py"
    path.write_text(found[1])
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
        httpx2.AsyncClient(auth=auth, timeout=60, headers=headers) as http,
        Client(streamable_http_client(f"{caller.url}/mcp", http_client=http), mode=mode, **more) as client,
    ):
        yield client


async def ended(client: Client, result: Any) -> Any:
    """What a call came to; the machine may be busy, and then the answer says how one waits on."""
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
def test_the_guides_client_runs_a_pipeline(
    example: dict[str, Any], alice: ApiCaller, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hers = session_of(alice)
    monkeypatch.setattr(boto3, "Session", lambda: hers)
    asyncio.run(example["main"](alice.url, "say", text="hello"))
    said = capsys.readouterr().out
    assert "tools: ask rest say cancel_task resume_task wait_for_task\n" in said
    if "status_url" not in said:  # else the machine is busy
        assert said.endswith("{'text': 'hello'}\n")
        assert "\n100 %: succeeded at echo\n" in said


@pytest.mark.rule("13.mcp", "13.mcp.failures", "13.mcp.progress")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_calls_succeed_and_fail(example: dict[str, Any], alice: ApiCaller, mode: str) -> None:
    async def run() -> None:
        async with connected(example, alice, mode) as client:
            assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
            told: list[float] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                told.append(progress)

            done = await client.call_tool("say", {"text": "hello"}, progress_callback=note)
            assert told == sorted(set(told))
            assert told != [] or "status_url" in done.structured_content
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
    """A client that gives up within a session says so, and the gateway knows which task that was."""
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
                lambda: found if (found := newest())["id"] != before and found["status"] == "canceled" else None,
                "the task to be canceled",
            )
            # The call is answered all the same. A client that is closed under an answer breaks over it.
            await asyncio.to_thread(until, lambda: "late request id" in caplog.text or None, "the call's answer")
            return canceled

    assert asyncio.run(run())["reason"] == "Canceled"
    gateway.mesh.upload(go_on, b"now")


@pytest.mark.rule("13.mcp.answer", "13.mcp.owner")
def test_what_takes_longer_is_waited_for_and_canceled_by_tools(
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
            found = late
            for _ in range(60):
                found = await hers.call_tool("wait_for_task", task)
                if "status_url" not in found.structured_content:
                    break
            assert found.structured_content == {"until": first}
            second = await hers.call_tool("rest", {"until": other})
            gone = await hers.call_tool("cancel_task", {"id": second.structured_content["id"]})
            assert gone.structured_content["status"] == "canceled"

    asyncio.run(run())
    gateway.mesh.upload(other, b"now")


@pytest.mark.rule("13.mcp.pause")
def test_a_person_is_asked_and_the_call_goes_on(example: dict[str, Any], alice: ApiCaller) -> None:
    asked: list[str] = []

    async def answer(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={})

    async def run() -> None:
        async with connected(example, alice, elicitation_callback=answer) as client:
            done = await client.call_tool("ask", {"text": "may I?"})
            assert (await ended(client, done)).structured_content == {"text": "may I?"}

    asyncio.run(run())
    assert asked == ["Task paused"]
