"""The steps of `asya smoke`. Each sends one envelope and waits for its end; alarm topics get a test message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from asya.client.errors import MeshError
from asya.client.watch import watch
from asya.function.aws.missing_queues import is_missing_queue
from asya.heavy.job_python import JOB_PYTHON
from asya.protocol import names
from asya.protocol.envelope import Envelope, Route
from asya.protocol.job_runs import attempts_prefix, parse_run_id
from asya_cli import clock
from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asya.client.connection import Connection
    from asya.client.mesh_client import MeshClient
    from asya.tasks.view import TaskView

_NAMES_PER_CALL = 100


def publish_test_messages(connection: Connection) -> str:
    """Publish a test message to each topic that the alarms of a mesh tell.

    Returns:
        A line for the user with the topics.

    Raises:
        CommandError: The alarms tell nobody, a receiver has not confirmed, or AWS refuses a call.
    """
    sns = connection.session.client("sns", connection.region)
    try:
        topics = sorted(set(_topics(connection)))
        if not topics:
            raise CommandError(
                f"the alarms of {connection.namespace} tell nobody", "Set `notify` in the mesh file, and deploy."
            )
        pending = [endpoint for topic in topics for endpoint in _unconfirmed(sns, topic)]
        for topic in topics:
            sns.publish(
                TopicArn=topic,
                Subject=f"Test message of the mesh {connection.namespace}",
                Message=f"`asya smoke --alarms` sent this message. The alarms of {connection.namespace} use this topic.",
            )
    except (ClientError, BotoCoreError) as error:
        raise CommandError(f"cannot tell the alarm topics: {error}", _PERMISSIONS) from error
    if pending:
        raise CommandError(
            f"these receivers have not confirmed their subscription and get nothing: {', '.join(pending)}",
            "Each was sent a link to confirm. To get another one, subscribe again in the SNS console.",
        )
    return f"a test message was sent to {', '.join(topics)}; see that it arrives"


_PERMISSIONS = (
    "This needs cloudformation:ListStackResources, cloudwatch:DescribeAlarms, sns:ListSubscriptionsByTopic and sns:Publish, "
    "and kms:GenerateDataKey and kms:Decrypt with the key of an encrypted topic."
)


def _topics(connection: Connection) -> Iterator[str]:
    """Yield the topics of the alarms, from the alarms themselves: the mesh file may name a topic of another stack."""
    session: Any = connection.session
    stack = names.stack_name(connection.namespace, "alarms")
    pages = (
        session.client("cloudformation", connection.region)
        .get_paginator("list_stack_resources")
        .paginate(StackName=stack)
    )
    alarms = [
        each["PhysicalResourceId"]
        for page in pages
        for each in page["StackResourceSummaries"]
        if each["ResourceType"] == "AWS::CloudWatch::Alarm"
    ]
    cloudwatch = session.client("cloudwatch", connection.region)
    for start in range(0, len(alarms), _NAMES_PER_CALL):
        answer = cloudwatch.describe_alarms(
            AlarmNames=alarms[start : start + _NAMES_PER_CALL], MaxRecords=_NAMES_PER_CALL
        )
        for alarm in answer["MetricAlarms"]:
            yield from (action for action in alarm.get("AlarmActions", []) if ":sns:" in action)


def _unconfirmed(sns: Any, topic: str) -> Iterator[str]:
    for page in sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic):
        for subscription in page["Subscriptions"]:
            if subscription["SubscriptionArn"] == "PendingConfirmation":
                yield subscription["Endpoint"]


State = Literal["ok", "skipped", "failed"]
LIGHT_SECONDS = 300.0
"""How long a light envelope may take; cold starts and a busy account included."""


@dataclass(frozen=True)
class Step:
    """The result of one step.

    Attributes:
        detail: What the step has shown, or why it failed.
        advice: Where to look after a failure.
    """

    name: str
    state: State
    seconds: float
    detail: str
    advice: str = ""


@dataclass(frozen=True)
class Smoke:
    """The steps on one mesh.

    Attributes:
        mark: The suffix of the ids of all envelopes, different in each call of the command.
        heavy_seconds: How long a job run may take, the start of the Spark application included.
        is_python_pinned: Whether the mesh file is known, and selects a Python for job runs.
        options: The options that select the mesh, as typed; messages name commands with them.
    """

    mesh: MeshClient
    mark: str
    heavy_seconds: float
    is_python_pinned: bool = False
    options: str = ""

    def gateway(self) -> Step:
        """Read the list of tasks: the API, the caller's permission, the function and its table."""
        return measured("gateway", self._read_tasks)

    def light(self) -> Step:
        """Send an envelope to x-checkpoint, which runs no user code: queue, sidecar, x-sink, S3, reports."""
        if not self._has_actor(names.CHECKPOINT):
            reason = f"the mesh has no {names.CHECKPOINT}; write crew: routable: [{names.CHECKPOINT}] in its file, or use --tool"
            return Step("light", "skipped", 0.0, reason)
        return measured("light", lambda: self._run_light(f"smoke-light-{self.mark}"))

    def index(self) -> Step:
        """Let x-index compact the rows of today: dispatcher, EMR Serverless, job role, completion."""
        if not self._has_actor(names.INDEX):
            reason = "the mesh has no x-index, because it has no heavy actor or `sink.index` is off"
            return Step("index", "skipped", 0.0, reason)
        return measured("index", lambda: self._run_index(f"smoke-index-{self.mark}"))

    def tool(self, name: str, arguments: bytes) -> Step:
        """Call a tool of the mesh file: the mesh's own actors.

        Args:
            name: The name of the tool.
            arguments: A JSON object.
        """
        return measured(name, lambda: self._call_tool(name, arguments))

    def _read_tasks(self) -> str:
        self.mesh.tasks(status=None, parent=None, limit=1)
        return self.mesh.connection.gateway_url

    def _run_light(self, envelope_id: str) -> str:
        task = self._send(envelope_id, names.CHECKPOINT, {"smoke": True}, LIGHT_SECONDS)
        stored = self.mesh.stored(envelope_id, task.result_uri)
        if stored is None:
            raise CommandError(f"{envelope_id} succeeded, but its object is missing: {task.result_uri or 'no address'}")
        return f"{envelope_id}: x-checkpoint → x-sink, {stored.uri}"

    def _run_index(self, envelope_id: str) -> str:
        today = clock.now().date().isoformat()
        self._send(envelope_id, names.INDEX, {"days": [today]}, self.heavy_seconds)
        run_id = next((entry.run.run_id for entry in reversed(self.mesh.timeline(envelope_id)) if entry.run), None)
        if run_id is None:
            return f"{envelope_id}: the timeline names no job run"
        try:
            version = self._python(run_id) or "unknown: the commit names none"
        except MeshError as error:
            # The run has succeeded, and its job compares the version too.
            version = f"unknown: {error.problem}"
        return f"{envelope_id}: {run_id}, Python {version}{self._python_note(run_id, version)}"

    def _python_note(self, run_id: str, version: str) -> str:
        """Compare the version of a run with the one that packages are installed for; the local cloud has its own.

        Raises:
            CommandError: The run should have used that one.
        """
        is_local = self.mesh.connection.endpoint_url is not None
        if is_local or not version[0].isdigit() or version.startswith(f"{JOB_PYTHON}."):
            return ""
        if self.is_python_pinned:
            raise CommandError(f"{run_id} ran on Python {version}, but the mesh selects {JOB_PYTHON}")
        return f" (packages of jobs are installed for {JOB_PYTHON})"

    def _call_tool(self, name: str, arguments: bytes) -> str:
        task = self._ended(self.mesh.call_tool(name, arguments), self.heavy_seconds)
        return f"{task.id}: {task.result_uri or 'no result is stored'}"

    def _send(self, envelope_id: str, actor: str, payload: object, seconds: float) -> TaskView:
        raw = msgspec.Raw(msgspec.json.encode(payload))
        self.mesh.send(Envelope(id=envelope_id, route=Route((), actor, ()), payload=raw))
        return self._ended(envelope_id, seconds)

    def _ended(self, envelope_id: str, seconds: float) -> TaskView:
        advice = f"`asya status {envelope_id} --timeline{self.options}` shows its hops. "
        advice += f"Then see the dead letters: `asya dlq list{self.options}`. "
        advice += "If the mesh file names `operators`, you must be one to follow the task."
        task: TaskView | None = None
        try:
            for task in watch(self.mesh, envelope_id, seconds):
                if task is not None and task.is_paused:
                    break
        except MeshError as error:
            raise CommandError(error.problem, advice) from error
        assert task is not None  # `watch` ends with the ended task
        if task.is_paused:
            raise CommandError(
                f"{envelope_id} waits for an answer",
                f"Answer it: `asya resume {envelope_id} --input JSON{self.options}`.",
            )
        if not task.has_succeeded:
            error_text = f"{task.error.type}: {task.error.message}" if task.error else task.reason or "no reason given"
            raise CommandError(f"{envelope_id} {task.status} at {task.actor or 'no actor'}: {error_text}", advice)
        return task

    def _has_actor(self, actor: str) -> bool:
        return self._queue_url(actor) is not None

    def _queue_url(self, actor: str) -> str | None:
        sqs = self.mesh.connection.sqs()
        try:
            return sqs.get_queue_url(QueueName=names.queue_name(self.mesh.connection.namespace, actor))["QueueUrl"]
        except ClientError as error:
            if is_missing_queue(error):
                return None
            raise CommandError(f"cannot look up the queue of {actor}: {error}") from error
        except BotoCoreError as error:
            raise CommandError(f"cannot look up the queue of {actor}: {error}") from error

    def _python(self, run_id: str) -> str | None:
        """Return the version of Python in the commit of a run; None if there is none.

        Raises:
            CommandError: The caller may not read the files of runs.
        """
        connection = self.mesh.connection
        place, url = parse_run_id(run_id, connection.namespace), self._queue_url(names.INDEX)
        if place is None or url is None:
            return None
        bucket = names.bucket_name(connection.namespace, url.split("/")[-2], connection.region)
        try:
            pages = (
                connection.s3().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=attempts_prefix(*place))
            )
            keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
        except (ClientError, BotoCoreError) as error:
            raise CommandError(f"cannot read the commit of {run_id}: {error}") from error
        commits = (self.mesh.fetch(f"s3://{bucket}/{key}") for key in keys if key.endswith("/commit.json"))
        return next((version for body in commits if body and (version := _version(body))), None)


def measured(name: str, run: Callable[[], str]) -> Step:
    """Run a step; a `CommandError` is a failed step."""
    began = clock.monotonic()
    try:
        detail = run()
    except MeshError as error:
        return Step(name, "failed", clock.monotonic() - began, error.problem, error.advice)
    return Step(name, "ok", clock.monotonic() - began, detail)


class _Commit(msgspec.Struct):
    python: str = ""


def _version(body: bytes) -> str | None:
    try:
        return msgspec.json.decode(body, type=_Commit).python or None
    except msgspec.MsgspecError:
        return None
