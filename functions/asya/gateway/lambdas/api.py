"""The gateway for people and programs: start a task, look at it (`protocol §13`)."""

import hashlib
import os
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from asya.dead_letters.aws.replay_sources import ReplaySources
from asya.fan_in.aws.sets import FanInSets
from asya.gateway.a2a.aws.push_configs import PushConfigs
from asya.gateway.a2a.routes.calls import Agents
from asya.gateway.a2a.routes.lists import AgentLists
from asya.gateway.a2a.routes.push_configs import AgentPush
from asya.gateway.a2a.routes.streams import AgentStreams
from asya.gateway.access import AccessRules
from asya.gateway.aws.submission_keys import SubmissionKeys
from asya.gateway.aws.task_starter import TaskStarter
from asya.gateway.http.origin import Origins
from asya.gateway.http.router import Request, Response, Route, answer, check_size, idempotency_key, required_identity
from asya.gateway.http.visible_tasks import visible_task
from asya.gateway.mcp.calls import McpCalls
from asya.gateway.mcp.cancel import McpCancels
from asya.gateway.mcp.routes import McpRoutes
from asya.gateway.routes.cancel import Cancels
from asya.gateway.routes.lists import Lists
from asya.gateway.routes.reruns import Reruns
from asya.gateway.routes.resume import Resumes
from asya.gateway.routes.tool_calls import ToolCalls
from asya.gateway.routes.tools import ToolRoutes
from asya.gateway.streams.following import Following
from asya.gateway.submission import first_message, is_stealth, read_submission
from asya.legacy.lambdas.calls import LegacyReads
from asya.messaging.aws import clients
from asya.messaging.aws.claim_check import SENDERS_PREFIX, ClaimCheck
from asya.messaging.aws.settings import Settings, load_settings
from asya.messaging.aws.submission_sender import SubmissionSender
from asya.messaging.aws.telemetry import Telemetry
from asya.messaging.lambdas.environment import REAL, Environment
from asya.pause.lambdas import pause_release
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.spark.aws.cancel_requests import CancelRequests
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.index import TaskIndex
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.partials import Partials
from asya.tasks.aws.tasks import Tasks


def _new_id() -> str:
    return str(uuid.uuid4())


def _new_span() -> str:
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Api:
    """What the calls need, and the calls.

    Attributes:
        gateway_url: what envelopes are told to report to; None = where the request came in.
        new_id: makes a task's id.
        new_span: makes 16 hexadecimal digits.
    """

    mesh: MeshTable
    tasks: Tasks
    starter: TaskStarter
    access: AccessRules
    lists: Lists
    cancels: Cancels
    reruns: Reruns
    resumes: Resumes
    tools: ToolRoutes
    mcp: McpRoutes
    agents: Agents
    gateway_url: str | None = None
    new_id: Callable[[], str] = _new_id
    new_span: Callable[[], str] = _new_span

    def routes(self, now: datetime) -> tuple[Route, ...]:
        """The calls as of one moment."""
        return (
            Route("POST", "/api/v1/mesh", lambda request: self.start(request, now)),
            Route("GET", "/api/v1/mesh/{id}", lambda request: self.task(request, now)),
            *self.lists.routes(now),
            *self.cancels.routes(now),
            *self.reruns.routes(now),
            *self.resumes.routes(now),
            *self.tools.routes(now),
            *self.mcp.routes(now),
            *self.agents.routes(now),
            *LegacyReads(self.tasks, self.access).routes(now),
            Route("GET", "/openapi.json", self.openapi),
            Route("GET", "/health", lambda _: Response(200, {"status": "ok"})),
        )

    def start(self, request: Request, now: datetime) -> Response:
        """`POST /api/v1/mesh?actor=A`: 201 with the task's id."""
        caller = self.access.caller(required_identity(request))
        check_size(request, self.mesh.gateway.max_body)
        submission = read_submission(request.body, request.query.get("actor"), self.mesh)
        compose = first_message(submission, Origins(self.gateway_url, self.new_span).of(request), self.mesh)
        # What is asked for is the actor and the body, byte for byte.
        digest = hashlib.sha256(submission.actor.encode() + b"\n" + request.body).hexdigest()
        key = idempotency_key(request, caller.principal, digest)
        if key is None:
            task_id = self.starter.start(compose, caller.principal, self.new_id(), now)
        else:
            task_id = self.starter.start_once(compose, key, self.new_id(), now)
        content = {"id": task_id, "tracked": False} if is_stealth(submission) else {"id": task_id}
        return Response(201, content)

    def task(self, request: Request, now: datetime) -> Response:
        """`GET /api/v1/mesh/{id}`: the record; somebody else's task is as good as none."""
        caller = self.access.caller(required_identity(request))
        return Response(200, visible_task(self.tasks, request.parameters["id"], caller, now))

    def openapi(self, request: Request) -> Response:
        """`GET /openapi.json`: what all the calls read and answer."""
        required_identity(request)
        # Made of many types that no other call needs.
        from asya.gateway.routes.openapi import document

        takes_tokens = Origins(self.gateway_url, self.new_span).takes_tokens(request)
        return Response(200, document(self.mesh, request.base_url, takes_tokens=takes_tokens))


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Lambda's entry point."""
    api, telemetry = _built()
    return answer(event, api.routes(REAL.now()), telemetry.log)


def build(settings: Settings, telemetry: Telemetry, environment: Environment = REAL) -> Api:
    """The calls over the mesh's table and queues."""
    table, retention = settings.table_name("tasks"), settings.table.retention.tasks
    store = DynamoTaskStore(clients.dynamodb(), table, retention, environment.pause)
    tasks = Tasks(store, telemetry.log.warning, threaded=environment.is_threaded)
    index = TaskIndex(clients.dynamodb(), table, threaded=environment.is_threaded)
    starter = TaskStarter(
        tasks=tasks,
        keys=SubmissionKeys(clients.dynamodb(), table, retention),
        sender=SubmissionSender(clients.sqs(), settings.queue_url, _claim_check(settings).offload),
        warn=telemetry.log.warning,
    )
    access = AccessRules(settings.table, settings.account, settings.region)
    hand_over = pause_release.build(settings, tasks, telemetry.log.warning)
    cancels = Cancels(
        tasks, store, index, access, hand_over, _cancel_requests(settings), environment, telemetry.log.warning
    )
    resumes = Resumes(settings.table, tasks, access, hand_over)
    task_lists = TaskLists(index, store, tasks)
    tool_calls = ToolCalls(settings.table, tasks, starter, environment, _new_id)
    origins = Origins(settings.gateway_url, _new_span)
    return Api(
        mesh=settings.table,
        tasks=tasks,
        starter=starter,
        access=access,
        lists=Lists(tasks, task_lists, access),
        cancels=cancels,
        reruns=_reruns(settings, tasks, starter, access),
        resumes=resumes,
        tools=ToolRoutes(tool_calls, access, origins),
        mcp=McpRoutes(
            mesh=settings.table,
            access=access,
            origins=origins,
            calls=McpCalls(tool_calls, tasks, cancels, resumes),
            cancels=McpCancels(starter, cancels, environment),
            new_id=_new_id,
            warn=telemetry.log.warning,
        ),
        agents=Agents(
            calls=tool_calls,
            cancels=cancels,
            resumes=resumes,
            lists=AgentLists(task_lists),
            push=AgentPush(settings.table, tasks, PushConfigs(clients.dynamodb(), table, retention)),
            streams=AgentStreams(
                Following(tasks, Partials(clients.dynamodb(), table, environment.pause), environment), environment
            ),
            access=access,
            origins=origins,
            warn=telemetry.log.warning,
        ),
        gateway_url=settings.gateway_url,
    )


def _claim_check(settings: Settings) -> ClaimCheck:
    """Like any sender's: under `inbox/` only (`protocol §4`)."""
    return ClaimCheck(clients.s3(), settings.bucket, prefix=SENDERS_PREFIX)


def _cancel_requests(settings: Settings) -> CancelRequests | None:
    """Only a mesh with a heavy actor has job runs to stop."""
    if not any(actor.kind == "spark" for actor in settings.table.actors.values()):
        return None
    return CancelRequests(clients.sqs(), queue_url=settings.queue_url(names.COMPLETION))


def _reruns(settings: Settings, tasks: Tasks, starter: TaskStarter, access: AccessRules) -> Reruns:
    mesh, s3 = settings.table, clients.s3()
    puts_together = any(actor.kind == "fan_in" for actor in mesh.actors.values())
    sets = FanInSets(clients.dynamodb(), s3, table=settings.table_name("fan-in"), bucket=settings.bucket)
    return Reruns(
        mesh=mesh,
        tasks=tasks,
        starter=starter,
        access=access,
        sources=ReplaySources(s3, settings.bucket, settings.results_uri, mesh.sink),
        claim_check=_claim_check(settings),
        sets=sets if puts_together else None,
        gateway_url=settings.gateway_url,
        new_id=_new_id,
        new_span=_new_span,
    )


@cache
def _built() -> tuple[Api, Telemetry]:
    settings = load_settings(os.environ)
    telemetry = Telemetry(settings.namespace, settings.actor)
    return build(settings, telemetry), telemetry
