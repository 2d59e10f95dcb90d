"""The mesh in numbers, for operators (`protocol §13`, operations)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.operations.aws.mesh_numbers import ActorMetrics, QueueReaders, QueueStates, RunCounter
from asya.capabilities.operations.mesh_numbers import (
    ActorDetails,
    ActorNumbers,
    Durations,
    MeshNumbers,
    QueueCount,
    Rates,
    RecentError,
    ToolRoute,
    Unread,
    circuit_state,
    edges,
    open_circuit,
)
from asya.gateway.http.router import Request, Response
from asya.gateway.operations.requests import available
from asya.protocol import names, states
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import format_time
from asya.sidecar.circuit_breaker import Circuit
from asya.sidecar.options import KEEP_INPUT
from asya.tasks.aws.lists import TaskLists
from asya.tasks.listing import ListQuery, TaskFilter

_ERRORS = 20
_ERROR_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class NumberRoutes:
    """Shows the numbers of the mesh and of one actor.

    Attributes:
        queue_url, dlq_url: return the URLs of an actor's queue and of the dead-letter queue behind it.
        circuit: reads the circuit of an actor.
        readers: knows which queues are read; None where functions are no Lambda functions.
        warn: logs why something is unknown.
    """

    mesh: MeshTable
    queues: QueueStates
    queue_url: Callable[[str], str]
    dlq_url: Callable[[str], str]
    metrics: ActorMetrics
    runs: RunCounter
    circuit: Callable[[str], Circuit]
    lists: TaskLists
    readers: QueueReaders | None
    warn: Callable[[str], None]

    def all(self, request: Request, now: datetime) -> Response:
        """`GET …/mesh`: all actors with their numbers, who sends to whom, and the tools."""
        with available("the numbers of the mesh"):
            actors = self._numbers(self._actors(request.query.get("actor")), now)
        tools = [ToolRoute(name=name, route=list(tool.route)) for name, tool in self.mesh.tools.items()]
        return Response(
            200,
            MeshNumbers(
                namespace=self.mesh.namespace, at=format_time(now), actors=actors, edges=edges(self.mesh), tools=tools
            ),
        )

    def actor(self, request: Request, now: datetime) -> Response:
        """`GET …/actors/{actor}`: one actor with its settings, its durations and its recent errors."""
        name = request.parameters["actor"]
        actor = self.mesh.actors.get(name)
        if actor is None:
            raise ApiError(404, "unknown_actor", f"there is no actor {name[: names.LABEL_LIMIT]!r}", "actor")
        with available("the numbers of the actor"):
            (numbers,) = self._numbers([name], now)
            queue = self.queues.state(self.queue_url(name))
        resiliency = actor.resiliency
        return Response(
            200,
            ActorDetails(
                numbers=numbers,
                queue=queue,
                timeout=actor.timeout,
                batch_size=actor.batch.size,
                frames=actor.frames,
                keep_input=KEEP_INPUT.of(actor),
                deduplicate=actor.deduplicate,
                can_send_to=actor.can_send_to,
                secrets=sorted(actor.secrets),
                access=actor.access,
                policies=resiliency.policies,
                rules=resiliency.rules,
                circuit_breaker=resiliency.circuit_breaker,
                durations=self._durations(name, now),
                recent_errors=self._errors(name, now),
            ),
        )

    def _actors(self, given: str | None) -> list[str]:
        """The actors of a comma-separated list that are in the mesh; all without a list."""
        wanted = self.mesh.actors.keys() if given is None else self.mesh.actors.keys() & set(given.split(","))
        return sorted(wanted)

    def _numbers(self, actors: Sequence[str], now: datetime) -> list[ActorNumbers]:
        counts = self.queues.counts(actors, self.queue_url)
        dead_letters = self.queues.counts(actors, self.dlq_url)
        rates = self._rates(actors, now)
        unread = self._unread(actors, counts)
        numbers = []
        for name in actors:
            actor = self.mesh.actors[name]
            rate = rates.get(name, Rates())
            breaker = actor.resiliency.circuit_breaker
            circuit = self.circuit(name) if breaker is not None else None
            numbers.append(
                ActorNumbers(
                    name=name,
                    kind=actor.kind,
                    waiting=counts[name].waiting,
                    in_flight=counts[name].in_flight,
                    dead_letters=dead_letters[name].waiting + dead_letters[name].in_flight,
                    oldest_seconds=rate.oldest,
                    per_minute=rate.received,
                    failing_per_minute=rate.failed,
                    circuit=circuit_state(circuit, now) if circuit is not None else None,
                    open_circuit=open_circuit(circuit, breaker)
                    if circuit is not None and breaker is not None
                    else None,
                    runs=self.runs.count(name) if actor.kind == "spark" else None,
                    not_read=unread.get(name),
                )
            )
        return numbers

    def _rates(self, actors: Sequence[str], now: datetime) -> dict[str, Rates]:
        try:
            return self.metrics.rates(actors, now)
        except (ClientError, BotoCoreError) as error:
            self.warn(f"the metrics are unavailable: {error}")
            return {}

    def _unread(self, actors: Sequence[str], counts: Mapping[str, QueueCount]) -> dict[str, Unread]:
        if self.readers is None:
            return {}
        try:
            return self.readers.unread(actors, {name for name, count in counts.items() if count.waiting})
        except (ClientError, BotoCoreError) as error:
            self.warn(f"which queues are read is unknown: {error}")
            return {}

    def _durations(self, actor: str, now: datetime) -> Durations:
        try:
            return self.metrics.durations(actor, now)
        except (ClientError, BotoCoreError) as error:
            self.warn(f"the metrics are unavailable: {error}")
            return Durations()

    def _errors(self, actor: str, now: datetime) -> list[RecentError]:
        """The newest tasks that failed at an actor; none if they are rare among the newest failed ones of the mesh."""
        query = ListQuery("tasks", TaskFilter(status=states.FAILED, actor=actor), limit=_ERRORS)
        page = self.lists.page(query, None, now)
        return [
            RecentError(
                id=task.id,
                at=task.updated_at,
                reason=task.reason,
                type=task.error.type if task.error else "",
                message=task.error.message[:_ERROR_LIMIT] if task.error else "",
            )
            for task in page.tasks
        ]
