"""The lines that functions and job runs have logged, for operators (`protocol §13`, operations)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from asya.capabilities.operations.aws.logs import FileSource, FunctionSource, LoggedLines, RunLogs, Source, read_page
from asya.capabilities.operations.cursors import decode_cursor, encode_cursor
from asya.capabilities.operations.log_lines import AFTER_THE_HOPS, LogPage, LogQuery, bounded, read_log_query
from asya.function.lambdas.environment import Environment
from asya.gateway.http.router import Request, Response
from asya.gateway.http.visible_tasks import unknown_task
from asya.gateway.operations.requests import available
from asya.heavy.aws.run_records import RunRecord, RunRecords
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.ids import is_usable
from asya.protocol.job_runs import parse_run_id, run_id
from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import parse_time
from asya.tasks.aws.task_store import TaskStore
from asya.tasks.listing import timeline

_BEFORE = timedelta(minutes=1)
"""Clocks differ, and a function logs before it reports."""
_RECENT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class LogRoutes:
    """Reads the lines about a task, of an actor and of a job run."""

    mesh: MeshTable
    store: TaskStore
    functions: LoggedLines
    runs: RunLogs
    records: RunRecords
    environment: Environment

    def of_task(self, request: Request, now: datetime) -> Response:
        """`GET …/logs/{id}`: lines of the task's actors about it, then those of its job runs."""
        task_id, query = request.parameters["id"], read_log_query(request.query)
        task = self.store.load(task_id, now) if is_usable(task_id) else None
        if task is None:
            raise unknown_task(task_id)
        record, _ = task
        since = query.since or parse_time(record.created_at) - _BEFORE
        hops = list(timeline(self.store.hops(task_id, now, None)))
        # A hop that fails at once may have reported its end alone.
        named = {record.actor or "", *((*record.route.prev, record.route.curr) if record.route else ())}
        actors = ({hop.actor for hop in hops} | named) & self.mesh.actors.keys() | set(AFTER_THE_HOPS)
        runs = dict.fromkeys(hop.run.run_id for hop in hops if hop.run is not None)
        with available("the logs"):
            sources: list[Source] = [
                FunctionSource(self.functions, actor, since.timestamp(), task_id) for actor in actors
            ]
            for each in runs:
                sources += self._files(each, query)
            return self._page(f"task {task_id}", query, sources)

    def of_actor(self, request: Request, now: datetime) -> Response:
        """`GET …/actors/{actor}/logs`: all lines of an actor's function, by default of the last hour."""
        actor, query = request.parameters["actor"], read_log_query(request.query)
        if actor not in self.mesh.actors and names.runner_of(actor) not in names.SYSTEM_FUNCTIONS:
            raise ApiError(404, "unknown_actor", f"there is no actor {actor[: names.LABEL_LIMIT]!r}", "actor")
        since = query.since or now - _RECENT
        with available("the logs"):
            return self._page(f"actor {actor}", query, [FunctionSource(self.functions, actor, since.timestamp())])

    def of_run(self, request: Request, _now: datetime) -> Response:
        """`GET …/runs/{run_id}/logs`: what driver and executors have written, or one of both."""
        name, query = request.parameters["run_id"], read_log_query(request.query)
        with available("the logs"):
            if self._record(name) is None:
                raise ApiError(404, "not_found", f"there is no job run {name[: names.QUEUE_NAME_LIMIT]!r}", "run_id")
            return self._page(f"run {name}", query, list(self._files(name, query)))

    def _page(self, subject: str, query: LogQuery, sources: list[Source]) -> Response:
        scope = query.scope(subject)
        after = decode_cursor(scope, query.cursor, 2) if query.cursor is not None else ()
        lines, position = read_page(sources, after, query.limit, self.environment.monotonic)
        return Response(
            200, LogPage(items=bounded(lines), next_cursor=encode_cursor(scope, position) if position else None)
        )

    def _files(self, name: str, query: LogQuery) -> Iterator[FileSource]:
        """Yield the files of a run; none if its record has expired."""
        record = self._record(name)
        if record is not None:
            for file in self.runs.files(record, query.source):
                yield FileSource(
                    self.runs, record.actor, run_id(self.mesh.namespace, record.actor, record.number), file
                )

    def _record(self, name: str) -> RunRecord | None:
        place = parse_run_id(name, self.mesh.namespace)
        return None if place is None else self.records.get(*place)
