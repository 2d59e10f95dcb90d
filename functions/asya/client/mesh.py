"""A mesh, as a program uses it: which mesh is meant, with the defaults of the command, and which tasks."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from asya.client.connection import find_on_aws, read_local
from asya.client.defaults import read_defaults
from asya.client.errors import MeshError
from asya.client.mesh_client import MeshClient
from asya.client.operations import Operations
from asya.client.payloads import encoded
from asya.client.resources import open_object
from asya.client.task import Task, as_raw, new_task_id
from asya.protocol.data_references import check_new_reference, check_reference
from asya.protocol.envelope import Envelope, Route
from asya.protocol.times import format_time
from asya.tasks.failures import merged
from asya.tasks.listing import TaskFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from typing import BinaryIO, Unpack

    from asya.client.connection import Connection
    from asya.tasks.failures import FailureGroup


class Filters(TypedDict, total=False):
    """The filters of a list. They hold together, and one that is left out means any (`protocol §13.list.filters`).

    Attributes:
        status: Tasks with this status, such as `failed`.
        tool: Tasks of this tool, their slices and other children included.
        actor: Tasks that are at this actor, or ended there.
        owner: Tasks of this principal; for operators.
        error: Tasks with this text in their error or reason.
        since, until: Tasks that were created at this time or later; before this time. With a time zone.
        roots: Only tasks that no other task has fanned out into.
        retrying: Only running tasks that run again after a failed attempt.
        resolved: Of failed tasks also those that are settled: replayed, dismissed or overtaken.
    """

    status: str | None
    tool: str | None
    actor: str | None
    owner: str | None
    error: str | None
    since: datetime | None
    until: datetime | None
    roots: bool
    retrying: bool
    resolved: bool


def task_filter(filters: Filters) -> TaskFilter:
    """Return the filters as the gateway takes them.

    Raises:
        ValueError: A time has no time zone.
    """
    return TaskFilter(
        status=filters.get("status"),
        tool=filters.get("tool"),
        actor=filters.get("actor"),
        owner=filters.get("owner"),
        error=filters.get("error"),
        since=_time("since", filters.get("since")),
        until=_time("until", filters.get("until")),
        roots=filters.get("roots", False),
        retrying=filters.get("retrying", False),
        resolved=filters.get("resolved", False),
    )


def _time(name: str, moment: datetime | None) -> str | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"{name} has no time zone; give a time such as datetime.now(UTC)")
    return format_time(moment)


DEFAULT_STATE = ".asya"


def select(
    name: str | None, state: str | Path | None = None, region: str | None = None, profile: str | None = None
) -> Connection:
    """Connect to the mesh that a program names.

    A state folder selects its local cloud. A name selects the local cloud of the default state folder, if that runs a mesh of this
    namespace and neither region nor profile is given, and else the mesh on AWS. Without both, the environment and `asya.toml`
    select, as for the command.

    Args:
        name: The namespace of the mesh, with its stage, such as `shop-prod`.
        state: The state folder of a local cloud.
        region: The AWS region; by default that of the environment and of the AWS configuration.
        profile: The profile of the AWS configuration.

    Raises:
        MeshError: There is no such mesh, or the arguments select two.
    """
    if state is not None:
        if region or profile:
            raise MeshError("a local cloud has no region and no profile", "Give a state folder, or a mesh on AWS.")
        connection = read_local(Path(state))
        if name is not None and connection.namespace != name:
            raise MeshError(f"the local cloud in {state} runs the mesh {connection.namespace!r}, and not {name!r}")
        return connection
    names_aws = bool(region or profile)
    defaults = read_defaults([], os.environ, Path.cwd())
    region, profile = region or defaults.get("region"), profile or defaults.get("profile")
    namespace = name or defaults.get("namespace")
    folder = Path(defaults.get("state") or DEFAULT_STATE)
    if namespace is None:
        return read_local(folder)
    if name is None or names_aws:
        return find_on_aws(namespace, region, profile)
    local = _local(folder)
    if local is not None and local.namespace == name:
        return local
    try:
        return find_on_aws(name, region, profile)
    except MeshError as error:
        here = f"{folder} runs the mesh {local.namespace!r}" if local else f"no mesh is running in {folder}"
        local_advice = "For a local mesh, run `asya dev` in this folder, or name its folder with `state`."
        raise type(error)(f"{error.problem}; {here}", f"{error.advice} {local_advice}") from error


def _local(folder: Path) -> Connection | None:
    """Return the local cloud in a state folder; None if there is none, or its file is not readable."""
    with suppress(MeshError):
        return read_local(folder)
    return None


class Mesh:
    """A deployed mesh: a local cloud, or one on AWS.

    `Mesh("shop")` is the local cloud in the folder `.asya`, if it runs this mesh, and else the mesh of this namespace on AWS. Calls
    are signed with the program's own AWS credentials, or with the key of the local cloud. An instance may be shared by threads.

    Args:
        name: The namespace of the mesh, with its stage, such as `shop-prod`. Without it, the environment and `asya.toml` select the
            mesh, as they do for the command.
        state: The state folder of a local cloud.
        region: The AWS region; by default that of the environment or of the AWS configuration.
        profile: The profile of the AWS configuration.
        client: What calls the mesh, in the place of the other arguments; for tests.

    Raises:
        MeshError: There is no such mesh.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        state: str | Path | None = None,
        region: str | None = None,
        profile: str | None = None,
        client: MeshClient | None = None,
    ) -> None:
        self._client = client or MeshClient(select(name, state, region, profile))

    @property
    def namespace(self) -> str:
        """The namespace of the mesh."""
        return self._client.connection.namespace

    def send(self, actor: str, payload: object, *, then: str | Sequence[str] = (), task_id: str | None = None) -> Task:
        """Send a payload to an actor, and return the task. It returns as soon as the envelope is on the actor's queue.

        Args:
            actor: The first actor of the route.
            payload: A pydantic model, a msgspec struct, a dataclass, or plain values.
            then: The actors after it, in order, or the only one.
            task_id: The id of the task, by default a random one. An id names one task for good. If it has a record, nothing is sent
                and that task is returned, so a program may repeat a call whose end it does not know. Two sends before the
                first actor has received an envelope are two deliveries of one, as SQS makes them too.

        Raises:
            NotFoundError: The mesh has no such actor.
            ContractError: The payload has no form in JSON.
            ValueError: The id cannot be one.
            MeshError: AWS fails or denies access. With `task_id`, the gateway may do so too.
        """
        following = (then,) if isinstance(then, str) else tuple(then)
        envelope = Envelope(id=new_task_id(task_id), route=Route((), actor, following), payload=as_raw(payload))
        if task_id is not None and self._client.task(task_id) is not None:
            return self.task(task_id)
        self._client.send(envelope)
        return self.task(envelope.id)

    def call(
        self, tool: str, arguments: object = None, /, *, idempotency_key: str | None = None, **named: object
    ) -> Task:
        """Start the task of a tool of the mesh file, with the route that it has there, and return the task.

        Args:
            tool: The name of the tool.
            arguments: Its arguments: a dict, or a model. Or give them by name.
            idempotency_key: A repeated call with this key starts no second task and returns the first one: 1 to 255 printable ASCII
                characters. It is kept as long as tasks are (`protocol §13.start.idempotent`).

        Raises:
            NotFoundError: The mesh has no such tool.
            TypeError: Arguments are given in both ways.
            ContractError: The arguments have no form in JSON.
            RefusedError: They do not fit the schema of the tool; `field` names the first mistake.
            ConflictError: The key was used for a call with other arguments.
            MeshError: The gateway fails or does not answer.
        """
        if arguments is not None and named:
            raise TypeError("give the arguments of a tool as one object or by name, not both")
        content = encoded(named if arguments is None else arguments)
        return self.task(self._client.call_tool(tool, content, idempotency_key or ""))

    def task(self, task_id: str) -> Task:
        """Return the task of an id. It asks nothing, so the task need not exist yet."""
        return Task(task_id, self._client)

    def tasks(self, **filters: Unpack[Filters]) -> Iterator[Task]:
        """Yield the tasks that the caller may see, newest first.

        Args:
            filters: Which of them: `status`, `tool`, `actor`, `owner`, `error`, `since`, `until`, `roots`.

        Raises:
            ValueError: `since` or `until` has no time zone.
            MeshError: The gateway does not answer, or answers with an error.
        """
        for view in self._client.iter_tasks(task_filter(filters)):
            yield self.task(view.id)

    def failures(self, **filters: Unpack[Filters]) -> list[FailureGroup]:
        """Return the open failures that the caller may see in groups by actor and error, most tasks first.

        Args:
            filters: Which of them, without `status`. With `retrying` they are the running tasks that run again after an error.

        Raises:
            ValueError: `since` or `until` has no time zone.
            MeshError: The gateway does not answer, or answers with an error.
        """
        pages = Operations(self._client).failure_pages(task_filter(filters))
        return merged(group for page in pages for group in page.items)

    def write_data(self, reference: str, body: bytes | BinaryIO) -> str:
        """Write a file to the data of the mesh, under the reference that payloads use, and return its URI.

        Raises:
            ValueError: The reference is malformed.
            MeshError: S3 fails or denies access.
        """
        return self._client.upload(check_new_reference(reference), body)

    def open_data(self, reference: str) -> BinaryIO:
        """Open a file in the data of the mesh for reading. Close it, or use `with`.

        Raises:
            ValueError: The reference is malformed.
            FileNotFoundError: There is no such file.
            MeshError: S3 fails or denies access.
        """
        data = self._client.connection.data
        body = open_object(self._client.connection, data.bucket, data.prefix + check_reference(reference))
        if body is None:
            raise FileNotFoundError(f"the data of the mesh has no {reference}")
        return body
