"""protocol §13 on the deployed mesh, IAM enforced: the unmodified official client of Agent2Agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import get_data_parts
from a2a.types import (
    AuthenticationInfo,
    CancelTaskRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import InvalidParamsError, TaskNotCancelableError, TaskNotFoundError
from google.protobuf.json_format import ParseDict

from asya.tasks.reporting.aws.gateway_client import address_of
from tests.cloud import callers
from tests.cloud.deployed_cloud import TIMEOUT_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Generator, Iterator

    from a2a.client import Client

    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

ENDED = {TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED}
CHANGES = {"TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"}
INPUT_REQUIRED = TaskState.TASK_STATE_INPUT_REQUIRED


class SigV4(httpx.Auth):
    """Signs requests, and sends them to the local cloud's address of the API."""

    requires_request_body = True

    def __init__(self, caller: ApiCaller) -> None:
        self._caller = caller

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        signed = self._caller.signed(request.method, str(request.url), request.content)
        request.headers.update(signed)
        request.url = httpx.URL(address_of(str(request.url)))
        yield request


@contextlib.asynccontextmanager
async def connected(caller: ApiCaller, *, streaming: bool = False) -> AsyncIterator[Client]:
    """A client that has read the card."""
    async with httpx.AsyncClient(auth=SigV4(caller), timeout=60, transport=caller.transport(httpx)) as http:
        card = await A2ACardResolver(http, caller.url).get_agent_card()
        yield ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)


def saying(data: dict[str, Any], *, text: str = "", **more: Any) -> SendMessageRequest:
    part = Part(text=text) if text else ParseDict({"data": data}, Part())
    return SendMessageRequest(message=Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[part], **more))


def calling(tool: str, arguments: dict[str, Any], **more: Any) -> SendMessageRequest:
    return saying({"skill": tool, "arguments": arguments}, **more)


async def sent(client: Client, request: SendMessageRequest) -> Task:
    """Sends a message and waits for its task, which may take longer than one answer on a busy machine."""
    async for answer in client.send_message(request):
        return await at_rest(client, answer.task)
    raise AssertionError("no answer")


async def at_rest(client: Client, task: Task) -> Task:
    ends = asyncio.get_running_loop().time() + TIMEOUT_SECONDS
    while task.status.state not in ENDED | {INPUT_REQUIRED} and asyncio.get_running_loop().time() < ends:
        async for item in client.subscribe(SubscribeToTaskRequest(id=task.id)):
            assert item
        task = await client.get_task(GetTaskRequest(id=task.id))
    return task


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


def result_of(task: Task) -> Any:
    assert task.status.state == TaskState.TASK_STATE_COMPLETED, task
    [artifact] = task.artifacts
    return get_data_parts(artifact.parts)[0]


@pytest.mark.rule("13.a2a.card")
def test_the_card_is_public(gateway: DeployedCloud) -> None:
    status, card = callers.anonymous(gateway).call("GET", "/.well-known/agent-card.json")
    assert (status, card["name"]) == (200, "gateway")
    assert [skill["id"] for skill in card["skills"]] == ["ask", "rest", "say"]
    assert callers.anonymous(gateway).call("POST", "/a2a", {})[0] == 403


@pytest.mark.rule("13.a2a.resume", "13.a2a.versions")
def test_an_agent_runs_a_pipeline_and_answers_its_question(alice: ApiCaller) -> None:
    """A message starts a task, another one resumes it; the id stays."""

    async def talk() -> None:
        async with connected(alice) as client:
            asking = await sent(client, calling("ask", {"n": 1}, context_id="trip"))
            assert (asking.status.state, asking.context_id) == (INPUT_REQUIRED, "trip")
            with pytest.raises(InvalidParamsError):
                await sent(client, saying({}, text="go on", task_id=asking.id))
            done = await sent(client, saying({"approved": True}, task_id=asking.id, context_id="trip"))
            assert (done.id, result_of(done)) == (asking.id, {"n": 1, "approved": True})
            with pytest.raises(InvalidParamsError):
                await sent(client, calling("say", {"text": ""}))

    run(talk())


@pytest.mark.rule("13.a2a.errors", "13.a2a.ids", "13.a2a.list")
def test_lists_hold_the_callers_tasks_of_a_context(alice: ApiCaller, bob: ApiCaller) -> None:
    context = str(uuid4())

    async def talk() -> None:
        async with connected(alice) as client, connected(bob) as other:
            task = await sent(client, calling("say", {"text": "hello"}, context_id=context))
            assert result_of(task) == {"text": "hello"}
            listed = await client.list_tasks(ListTasksRequest(context_id=context, include_artifacts=True))
            assert [(each.id, len(each.artifacts)) for each in listed.tasks] == [(task.id, 1)]
            assert not (await other.list_tasks(ListTasksRequest(context_id=context))).tasks
            with pytest.raises(TaskNotFoundError):
                await other.get_task(GetTaskRequest(id=task.id))
            with pytest.raises(TaskNotCancelableError):
                await client.cancel_task(CancelTaskRequest(id=task.id))

    run(talk())


@pytest.mark.rule("13.a2a.cancel", "13.a2a.stream")
def test_a_stream_shows_the_events_and_a_task_is_canceled(gateway: DeployedCloud, alice: ApiCaller) -> None:
    go_on = f"go/{uuid4()}"

    async def talk() -> None:
        async with connected(alice, streaming=True) as client:
            items = [item async for item in client.send_message(calling("say", {"text": "hello"}))]
            task = await at_rest(client, items[0].task)
            assert result_of(task) == {"text": "hello"}
            again = [item async for item in client.subscribe(SubscribeToTaskRequest(id=task.id))]
            assert (again[0].task.id, again[-1].status_update.status.state) == (task.id, TaskState.TASK_STATE_COMPLETED)
        async with connected(alice) as client:
            request = calling("rest", {"until": go_on})
            request.configuration.return_immediately = True
            async for answer in client.send_message(request):
                running = answer.task
            canceled = await client.cancel_task(CancelTaskRequest(id=running.id))
            assert canceled.status.state == TaskState.TASK_STATE_CANCELED

    run(talk())
    gateway.mesh.upload(go_on, b"now")


@contextlib.contextmanager
def listening() -> Iterator[tuple[str, list[tuple[str | None, str | None, Any]]]]:
    """A client's server: its address and the notifications it received."""
    notifications: list[tuple[str | None, str | None, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            notifications.append((self.headers["x-a2a-notification-token"], self.headers["authorization"], body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}/told", notifications
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.rule("13.a2a.push", "13.a2a.push.config")
def test_a_client_is_notified_of_each_change_at_its_own_address(alice: ApiCaller) -> None:
    with listening() as (url, notifications):

        async def talk() -> None:
            async with connected(alice) as client:
                config = TaskPushNotificationConfig(
                    url=url, token="mine", authentication=AuthenticationInfo(scheme="Bearer", credentials="secret")
                )
                request = calling("ask", {"n": 2})
                request.configuration.task_push_notification_config.CopyFrom(config)
                asking = await sent(client, request)
                assert asking.status.state == INPUT_REQUIRED
                found = await client.list_task_push_notification_configs(
                    ListTaskPushNotificationConfigsRequest(task_id=asking.id)
                )
                assert [(each.url, each.authentication.credentials) for each in found.configs] == [(url, "")]
                done = await sent(client, saying({"ok": True}, task_id=asking.id))
                assert done.id == asking.id
            # In any order, and possibly more than once.
            until(lambda: states() >= CHANGES or None, "the client to be notified of every change")

        def states() -> set[str]:
            return {body["task"]["status"]["state"] for _, _, body in notifications}

        run(talk())
    assert {(token, authorization) for token, authorization, _ in notifications} == {("mine", "Bearer secret")}
    assert len({body["task"]["id"] for _, _, body in notifications}) == 1
    [end] = [body["task"] for _, _, body in notifications if body["task"]["status"]["state"] == "TASK_STATE_COMPLETED"][
        :1
    ]
    assert end["artifacts"][0]["parts"][0]["data"] == {"n": 2, "ok": True}
