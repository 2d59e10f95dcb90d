"""Connects the queues of a mesh with its functions, and tells the author how tasks end."""

from __future__ import annotations

import pkgutil
import shlex
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asya import manifest, registry
from asya.manifest import Function
from asya.protocol import names, states
from asya.protocol.events import TaskEvent
from asya.protocol.text import one_line
from asya.tasks.received_reports import BatchError, read_event, read_list
from asya_infra.resource_settings import QueueSettings, actor_queue, system_queues
from asya_local.dev.deployment import Deployment
from asya_local.dev.event_sources import EventSource, TableChanges
from asya_local.dev.functions import DevServices, Tell, build_function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.manifest import ActorFunction
    from asya.protocol.mesh_table import MeshTable
    from asya.sidecar.lambdas.entry_point import ChangesEntryPoint
    from asya_local.dev.handlers import Handlers


@dataclass
class Ends:
    """Tells each end once: an envelope that fails is reported by x-sump, and again when its end is final."""

    tell: Tell
    _told: deque[tuple[str, int, str]] = field(default_factory=lambda: deque(maxlen=10_000))

    def read(self, event: Mapping[str, Any], table: MeshTable) -> None:
        """Tell the ends in a batch of the queue of ends; a message that cannot be read is the business of its function."""
        for record in event["Records"]:
            with suppress(BatchError):
                for end in _ends(record["body"].encode("utf-8", "surrogatepass")):
                    key = (end.id, end.generation, end.status)
                    if key not in self._told:
                        self._told.append(key)
                        self.tell(*_described(end, table))


def _ends(body: bytes) -> Iterator[TaskEvent]:
    for raw in read_list(body):
        report = read_event(raw)
        if isinstance(report, TaskEvent) and report.status in states.AT_REST:
            yield report


def _described(end: TaskEvent, table: MeshTable) -> tuple[str, str]:
    """Return the level and the text of an end; an error is told once, so that of a handler's traceback is not told here."""
    error, data = end.data.error, end.data
    text = one_line(f"{end.id} {end.status} at {data.actor}" if data.actor else f"{end.id} {end.status}")
    if end.status == states.PAUSED:
        return "end", f"{text}: asya resume {one_line(shlex.quote(end.id))} --pause {one_line(end.at)}"
    if error is None:
        reason = None if end.status == states.SUCCEEDED else data.reason
        return "end", text if reason is None else f"{text}: {one_line(reason)}"
    summary, trace = f"{error.type}: {error.message}", error.traceback.rstrip()
    if not trace:
        return "error", f"{text}: {one_line(summary)}"
    actor = table.actors.get(data.actor)
    if actor is None or actor.kind not in {"spark", "end"}:
        return "error", text
    if trace.endswith(summary):
        return "error", f"{text}:\n{trace}"
    return "error", f"{text}: {one_line(summary)}\n{trace}"


Process = Callable[[Mapping[str, Any]], set[str]]


@dataclass(eq=False)
class Connections:
    """The event sources of a mesh.

    Attributes:
        sqs: A client for polls.
        streams: A client of DynamoDB Streams.
        handlers: The handlers.
        tell: Takes the level and the text of what the author should know.
    """

    sqs: Any
    streams: Any
    handlers: Handlers
    tell: Tell
    _sources: dict[str, EventSource] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ends = Ends(self.tell)
        self._changes: TableChanges | None = None

    def update(self, mesh: Deployment) -> None:
        """Let all queues of the mesh call its functions as they are now; those of removed actors call none."""
        queues = {name: actor_queue(name, mesh.table) for name in mesh.table.actors} | system_queues(mesh.table)
        for name in self._sources.keys() - queues.keys():
            self._sources.pop(name).end()
        for name, settings in queues.items():
            self._connect(mesh, name, settings)
        self._feed_notifications(mesh)

    def end(self) -> None:
        """Call no function any more."""
        if self._changes is not None:
            self._changes.end()
        for source in self._sources.values():
            source.end()

    def _connect(self, mesh: Deployment, name: str, settings: QueueSettings) -> None:
        consumer = registry.consumer_of(name, mesh.table)
        is_light = consumer.queues is None
        batch = mesh.table.actors[name].batch.size if consumer.queues is None else consumer.queues.batch
        process = self._handler(mesh, name, settings) if is_light else self._function(mesh, name, consumer)
        ready = (lambda: self.handlers.wait_until_loaded(name)) if is_light else _always
        source = self._sources.get(name)
        if source is not None:
            source.batch_size, source.process, source.ready = batch, process, ready
            return
        queue = names.queue_name(mesh.loaded.namespace, name)
        url = mesh.addresses.queue_url_prefix + queue
        source = EventSource(self.sqs, name, queue, url, batch, process, self.tell, ready)
        self._sources[name] = source
        source.start()

    def _feed_notifications(self, mesh: Deployment) -> None:
        """Pass the changes of watched tasks on; only a mesh with tools has agents."""
        for each in registry.functions_of(mesh.table):
            if isinstance(each.called_by, manifest.TableChanges):
                entry_point: ChangesEntryPoint = pkgutil.resolve_name(each.entry_point)
                feed = entry_point.start(DevServices(mesh.settings(each.name), tell=self.tell))
                if self._changes is None:
                    table = names.table_name(mesh.loaded.namespace, "tasks")
                    self._changes = TableChanges(self.streams, table, feed.process, self.tell)
                    self._changes.start()
                else:
                    self._changes.process = feed.process

    def _handler(self, mesh: Deployment, name: str, settings: QueueSettings) -> Process:
        variables, seconds = mesh.variables(name), float(settings.function_timeout)
        return lambda event: self.handlers.process(name, variables, event, seconds)

    def _function(self, mesh: Deployment, name: str, consumer: Function | ActorFunction) -> Process:
        own = consumer.name if isinstance(consumer, Function) else name
        function = build_function(mesh.settings(own), self.tell)

        def process(event: Mapping[str, Any]) -> set[str]:
            failed = {failure["itemIdentifier"] for failure in function(event)["batchItemFailures"]}
            if name == names.ENDS:
                self._ends.read(event, mesh.table)
            return failed

        return process


def _always() -> None:
    """A function without a handler can be called at any time."""
