"""A mesh in the process of a test."""

import json
import tempfile
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from asya.capabilities.dead_letters.http_calls import DISMISS, REPLAY
from asya.capabilities.dead_letters.replay import ReplayRequest
from asya.capabilities.dead_letters.settlements import Dismissed, DismissRequest
from asya.capabilities.pauses.http_calls import RESUME
from asya.client.calls import to
from asya.contracts.codec import plain
from asya.protocol.envelope import Envelope
from asya.protocol.names import dlq_name, table_name
from asya.protocol.states import ViewStatus
from asya.tasks.aws.partials import PartialStore
from asya.tasks.http_calls import CALL_TOOL, CANCEL, START_TASK
from asya.tasks.received_reports import EARLIEST, LATEST
from asya.testing import messages
from asya.testing.api import Api
from asya.testing.deployment import deploy
from asya.testing.errors import TestKitError, hint
from asya.testing.external import ExternalSystems
from asya.testing.isolation import on_own_clock, plain_datetime
from asya.testing.messages import produce, put
from asya.testing.run import Run
from asya.testing.services.notifications import Notification
from asya.testing.virtual_time import VirtualTime
from asya_infra.mesh_file.load import load_mesh

T = TypeVar("T")


@on_own_clock
class Mesh:
    """A mesh in this process: its handlers, the real sidecars, sinks and gateway, and services in memory.

    Time is virtual. It passes in retries, pauses and `travel`, and stands still while a handler runs. IAM, the size of code and
    the speed of AWS are not tested here: `asya local up` does that.

    Args:
        path: the mesh file.
        stage: a stage of the mesh file.
        data: the folder behind `ASYA_DATA_URI`; by default an empty one.
        env: environment variables of all actors, such as the values of secrets.
        seed: decides the order of what happens at the same time.
        start: the virtual time of the start; by default that of the machine.
        allowed_endpoints: AWS endpoints that handlers and jobs may call, such as `localhost:4566` or
            `bedrock-runtime.*.amazonaws.com`. By default every call is refused. With one, they have the AWS variables of the test.

    Attributes:
        cloud: what the mesh runs on: queues, tables, bucket, functions and faults. Tests of actors need none of it.

    Raises:
        asya_infra.mesh_file.source.MeshFileError: the mesh file has problems; each has its line.
        TestKitError: the start has no time zone, or a mesh refuses reports of that time.
    """

    def __init__(
        self,
        path: str | Path = "mesh.yaml",
        *,
        stage: str | None = None,
        data: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        seed: int = 0,
        start: datetime | None = None,
        allowed_endpoints: Iterable[str] = (),
    ) -> None:
        loaded = load_mesh(Path(path), stage)
        self._folder = tempfile.TemporaryDirectory(prefix="asya-testing-") if data is None else None
        self.data = Path(data if self._folder is None else self._folder.name).resolve()  # type: ignore[arg-type]
        self.data.mkdir(parents=True, exist_ok=True)
        data_uri = f"file://{self.data}/"
        began = plain_datetime(start or datetime.now(UTC))
        _check_start(began)
        self.cloud = deploy(
            loaded, data_uri, dict(env or {}), seed=seed, start=began, allowed_endpoints=tuple(allowed_endpoints)
        )
        self._api = Api(self.cloud)
        self._time = VirtualTime(self.cloud)
        self._external = ExternalSystems(self._api, data_uri)

    # --- what a caller does ----------------------------------------------------------------------------------------

    def send(
        self,
        actor: str,
        payload: Any = None,
        *,
        then: Iterable[str] = (),
        headers: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Run:
        """Send a payload to an actor, and let the mesh work until it is at rest.

        A run that has not ended by then gets up to 15 virtual minutes for what scheduled functions do: deadlines, open sets
        and dead letters.

        Args:
            payload: a value that JSON has a form for, a dataclass or a model.
            then: the next actors of the route, or the only next one.
            headers: headers of the envelope.
            timeout: seconds to the deadline of the task; not with `then`, because a producer sets no deadline.

        Raises:
            TestKitError: the mesh has no such actor.
            RefusedError: the gateway refuses the task.
        """
        then = (then,) if isinstance(then, str) else tuple(then)
        for name in (actor, *then):
            self._check_actor(name)
        if then:
            if timeout is not None:
                raise TestKitError("only the gateway sets deadlines, and it takes one actor: give `timeout` or `then`")
            run = Run(self, produce(self.cloud, actor, then, payload, headers or {}))
        else:
            body = {"payload": plain(payload, "payload")} | ({"headers": headers} if headers else {})
            body |= {"timeout": timeout} if timeout is not None else {}
            run = Run(self, self.ask(*to(START_TASK, {"actor": actor}), _Started, body=body).id)
        self._time.settle(run)
        return run

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Run:
        """Call a tool of the mesh file, as models and agents do, and let the mesh work until it is at rest.

        Raises:
            TestKitError: the mesh has no such tool.
            RefusedError: the arguments do not fit the schema of the tool.
        """
        if tool not in self.cloud.table.tools:
            raise TestKitError(f"the mesh has no tool {tool!r}{hint(tool, self.cloud.table.tools)}")
        body = {"name": tool, "arguments": plain(dict(arguments or {}), "payload")}
        run = Run(self, self.ask(*to(CALL_TOOL), _Started, body=body).id)
        self._time.settle(run)
        return run

    def fire(
        self,
        trigger: str,
        *,
        at: datetime | None = None,
        key: str | None = None,
        event: Mapping[str, Any] | None = None,
    ) -> Run:
        """Start a task of a trigger, and let the mesh work until it is at rest. Time stands still.

        A slot starts once, so the run of a slot that has started is the run of that task. Each call with a key writes the
        object again, and each one with an event sends another event. What is skipped or gathered has no task of its own, and its
        run stays `unknown`: look at `runs`.

        Args:
            trigger: the name of a trigger.
            at: the slot of a schedule, by default the next one.
            key: the key of a new object, for a trigger with `s3`.
            event: members of an event, such as `source` and `detail`, for a trigger with `event`.

        Raises:
            TestKitError: the mesh has no such trigger, the time is no slot of it, or it does not react to the object.
        """
        run = Run(
            self, self._external.fire(trigger, at=plain_datetime(at) if at is not None else None, key=key, event=event)
        )
        self._time.settle(run)
        return run

    def webhook(self, trigger: str, body: Any, *, event: str = "", content_type: str = "application/json") -> Run:
        """Call the webhook of a trigger, signed as its sender does, and let the mesh work until it is at rest.

        Args:
            body: a value that becomes JSON, or the bytes of the body.
            event: the name of the event, for the scheme `github`.
            content_type: the content type of the body.

        Raises:
            TestKitError: the mesh has no such webhook.
            RefusedError: the gateway refuses the webhook.
        """
        run = Run(self, self._external.webhook(trigger, body, event=event, content_type=content_type))
        self._time.settle(run)
        return run

    def answer(self, run: Run, **fields: Any) -> Run:
        """Answer the question of a paused run, and let the mesh work until it is at rest.

        Raises:
            RefusedError: the run is not paused, or an answer does not fit its field.
        """
        self.ask(*to(RESUME, id=run.id), _Started, body={"input": plain(fields, "payload")})
        self._time.settle(run)
        return run

    def call_back(self, run: Run, **fields: Any) -> Run:
        """Answer the question of a paused run by its link, as a person or a job without an account does.

        Raises:
            TestKitError: the pause has no link.
            RefusedError: the link was used already or has expired, or an answer does not fit its field.
        """
        self._external.call_back(run, fields)
        self._time.settle(run)
        return run

    def cancel(self, run: Run) -> Run:
        """Cancel a run, as its caller may.

        Raises:
            RefusedError: the run has ended.
        """
        self.ask(*to(CANCEL, id=run.id), None)
        self._time.settle(run)
        return run

    def redrive(self, actor: str, *, force: bool = False) -> tuple[Run, ...]:
        """Send the dead letters of an actor again, as an operator does, and let the mesh work until it is at rest.

        Args:
            force: also for tasks that have succeeded, were canceled or went on elsewhere.

        Raises:
            RefusedError: the gateway refuses a dead letter, which stays. Those before it are sent.
        """
        self._check_actor(actor)
        queue = dlq_name(self.cloud.table.namespace, actor)
        sent = messages.redrive(self.ask, self.cloud.queues, queue, actor, force=force)
        runs = tuple(Run(self, envelope_id) for envelope_id in sent)
        for run in runs:
            self._time.settle(run)
        return runs

    def replay(
        self,
        run: Run,
        *,
        hop: int | None = None,
        checkpoint: int | None = None,
        failed_only: bool = False,
        force: bool = False,
    ) -> Run:
        """Run an envelope again as a new task, as an operator does, and let the mesh work until it is at rest.

        Args:
            run: the run, which stays as it ended.
            hop: the position of a hop whose actor has `keep_input`; by default the hop that failed.
            checkpoint: the position of a checkpoint.
            failed_only: after the failure of a set, run only the slices without a result again.
            force: replay the run although it was replayed, dismissed or overtaken, or elsewhere than where it was.

        Raises:
            RefusedError: there is no such copy of the envelope, or the run is settled.
        """
        request = ReplayRequest(hop=hop, checkpoint=checkpoint, failed_only=failed_only, force=force)
        again = Run(self, self.ask(*to(REPLAY, id=run.id), _Started, body=request).id)
        self._time.settle(again)
        return again

    def dismiss(self, run: Run, reason: str) -> None:
        """Say that the failure of a run needs no replay, as `asya dismiss` does.

        Raises:
            RefusedError: the run has not failed, or is settled in another way.
        """
        self.ask(*to(DISMISS, id=run.id), Dismissed, body=DismissRequest(reason=reason))

    def travel(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass. The scheduled functions run each minute at first, and less often on a long way.

        They also run at each slot of a trigger.
        """
        self._time.travel(timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds))

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return self._time.now

    def deliver(self, actor: str, body: str) -> Run:
        """Send a text as the body of an SQS message, and let the mesh work until it is at rest. The text may be no envelope.

        Raises:
            TestKitError: the mesh has no such actor.
        """
        self._check_actor(actor)
        run = Run(self, put(self.cloud, actor, body))
        self._time.settle(run)
        return run

    # --- what goes wrong -------------------------------------------------------------------------------------------

    def kill_after(self, actor: str, *, times: int = 1) -> None:
        """Kill the process of an actor after its next batch: all is sent, and SQS delivers the batch again."""
        self._check_actor(actor)
        self.cloud.faults.deaths[actor] += times

    def kill_during(self, actor: str, *, times: int = 1) -> None:
        """Kill the process of an actor in its next call: nothing is sent, and SQS delivers the batch again.

        The driver of a heavy actor dies with its job run.
        """
        self._check_code(actor)
        self.cloud.faults.interruptions[actor] += times

    def duplicate(self, actor: str, *, times: int = 1) -> None:
        """Let SQS deliver the next message to an actor twice."""
        self._check_actor(actor)
        self.cloud.faults.copies[actor] += times

    def fail(self, actor: str, error: type[BaseException] | BaseException, *, times: int = 1) -> None:
        """Let the next calls of an actor's handler raise an error instead.

        Args:
            error: an exception, or its class.
        """
        self._check_code(actor)
        # Each call raises an error with a traceback of its own.
        new = (
            (lambda: error.with_traceback(None))
            if isinstance(error, BaseException)
            else lambda: error(f"planned for {actor}")
        )
        self.cloud.faults.failures.setdefault(actor, deque()).extend([new] * times)

    # --- what a run reads ------------------------------------------------------------------------------------------

    @property
    def objects(self) -> Mapping[str, bytes]:
        """The content of the mesh's bucket by key: results, paused envelopes and so on."""
        return self.cloud.objects

    @property
    def dead_letters(self) -> tuple[str, ...]:
        """The bodies of the messages in dead-letter queues: those that SQS delivered too often; see `redrive`."""
        return tuple(message.body for message in messages.waiting(self.cloud.queues))

    @property
    def notifications(self) -> tuple[Notification, ...]:
        """The push notifications to agents, oldest first. They are kept, and none leaves the process."""
        return tuple(self.cloud.notifications.sent)

    @property
    def log(self) -> tuple[str, ...]:
        """What happened, one line each: seconds, process and call."""
        return tuple(self.cloud.simulation.log.lines)

    def runs(self, status: ViewStatus | None = None) -> tuple[Run, ...]:
        """The tasks of the mesh, newest first, with slices and other children.

        Args:
            status: only the tasks in this status.
        """
        return tuple(Run(self, task.id) for task in self._api.tasks(status))

    def partials_of(self, envelope_id: str) -> list[Any]:
        """What the handlers and jobs of an envelope said on their way; see `Run.partials`."""
        store = PartialStore(self.cloud.tables, table_name(self.cloud.table.namespace, "tasks"), lambda _: None)  # type: ignore[arg-type]
        # Those of earlier hours too, which the gateway does not show any more.
        batches = store.read(envelope_id, datetime.fromtimestamp(0, UTC))
        return [json.loads(bytes(partial.data)) for batch in batches for partial in batch.messages]

    def sent(self, envelope_id: str) -> list[Envelope]:
        """The messages of an envelope in the order of their sends."""
        return [sent.envelope for sent in self.cloud.history.sent.get(envelope_id, [])]

    def children_of(self, envelope_id: str) -> list[str]:
        """The ids of the envelopes that descend from an envelope directly."""
        return self.cloud.history.children_of(envelope_id)

    def ask(self, method: str, path: str, answer: type[T] | None, *, body: Any = None, or_none: bool = False) -> Any:
        """Call the API of the gateway and return its answer.

        Args:
            answer: the type of the answer; None for one without content.
            body: a value that becomes JSON, or bytes.
            or_none: return None for what the gateway does not know.

        Raises:
            RefusedError: the gateway refuses the call.
        """
        return self._api.ask(method, path, answer, body=body, or_none=or_none)

    def _check_actor(self, name: str) -> None:
        known = self.cloud.table.actors
        if name not in known:
            raise TestKitError(f"the mesh has no actor {name!r}{hint(name, known)}")

    def _check_code(self, actor: str) -> None:
        self._check_actor(actor)
        if self.cloud.table.actors[actor].kind not in ("handler", "spark"):
            raise TestKitError(f"actor {actor!r} has no handler or job that could fail")

    def __repr__(self) -> str:
        """The namespace and the time that has passed."""
        return f"<Mesh {self.cloud.table.namespace}, {self.now - self.cloud.simulation.scheduler.start_time} old>"


def _check_start(start: datetime) -> None:
    if start.tzinfo is None:
        raise TestKitError(f"the start {start} has no time zone; add tzinfo=UTC")
    if not EARLIEST <= start < LATEST:
        years = f"{EARLIEST.year} to {LATEST.year - 1}"
        raise TestKitError(
            f"the start {start} is outside the years {years}, in which a mesh takes reports; freeze a later time, or give "
            "Mesh(…, start=…)"
        )


class _Started(msgspec.Struct, frozen=True):
    id: str
