"""Deploys a mesh file to a simulated cloud: queues, tables, functions and the gateway, without AWS."""

import os
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from random import Random
from typing import Any, TypeVar
from unittest import mock

from msgspec import structs

from asya import registry
from asya.capabilities.a2a.lambdas import push as push_wiring
from asya.contracts.function import input_schema
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.gateway.lambdas import wiring as gateway_wiring
from asya.manifest import Requests
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.slices import SetDue, decode_message
from asya.senders.lambdas import wiring as sender_wiring
from asya.testing.code_views import view_of
from asya.testing.dynamo.queries import new_tables
from asya.testing.dynamo.tables import MemoryDynamo
from asya.testing.errors import TestKitError
from asya.testing.history import History
from asya.testing.isolation import isolated
from asya.testing.job_runs import SPARK, JobRuns
from asya.testing.permissions import (
    Guarded,
    Permissions,
    of_events,
    of_items,
    of_metrics,
    of_objects,
    of_queues,
)
from asya.testing.planned_faults import PlannedFaults
from asya.testing.services.clients import Bucket, DynamoClient, EventBus, EventsClient, NoMetrics, S3Client
from asya.testing.services.event_source import EventSources
from asya.testing.services.faults import FaultProfile
from asya.testing.services.functions import (
    ACCOUNT,
    BUCKET,
    QUEUES,
    REGION,
    RESULTS_URI,
    EntryPoint,
    Function,
    SimulatedServices,
    SystemFunctions,
)
from asya.testing.services.gateway import URL, Gateway, GatewayFunction, event, started
from asya.testing.services.notifications import Notifications
from asya.testing.services.process import Process, Simulation, current_process
from asya.testing.services.queues import Message, Queue, Queues, SqsClient
from asya.testing.services.roles import ListedRoles, role_id, write_secrets
from asya.testing.services.scheduler import EventLog, Scheduler
from asya.testing.user_code import CODE_FOLDERS, UserProcess
from asya_infra import timings
from asya_infra.mesh_file.legacy.variables import handler_variables
from asya_infra.mesh_file.load import LoadedMesh
from asya_infra.mesh_file.table import to_table
from asya_infra.resource_settings import QueueSettings, actor_queue, system_queues
from asya_local.emr.local_spark import data_files

T = TypeVar("T")

# The turns of one test: a handler that sends to itself for ever ends here.
MAX_TURNS = 2_000_000
CONCURRENCY = 10
TEST_USER = f"arn:aws:iam::{ACCOUNT}:user/test"


class TestServices(SimulatedServices):
    """The services of a function whose secrets are variables of the test."""

    __test__ = False

    @cached_property
    def secrets(self) -> Any:
        """See `Services`."""
        spec = self.settings.table.actors.get(self.settings.actor)
        if spec is None or not spec.secrets:
            return None
        given = {**os.environ, **(self.process.variables if isinstance(self.process, UserProcess) else {})}
        return GivenSecrets({name: {given[name]} for name in spec.secrets if name in given})


@dataclass(frozen=True)
class GivenSecrets:
    """The secrets of an actor, which are variables of the test and stay as they are."""

    known_values: Mapping[str, set[str]]

    def refresh(self) -> None:
        """See `Secrets`."""


@dataclass
class Deployment:
    """A deployed mesh: its functions, the services below them, and the faults that a test plans.

    Attributes:
        faults: what goes wrong, by actor or function; see `PlannedFaults`.
        allowed_endpoints: the endpoints that code of the mesh may call.
    """

    table: MeshTable
    simulation: Simulation
    faults: PlannedFaults
    history: History
    queues: Queues
    tables: MemoryDynamo
    bucket: Bucket
    gateway: Gateway
    system: SystemFunctions
    sources: EventSources
    bus: EventBus
    jobs: JobRuns
    notifications: Notifications
    allowed_endpoints: tuple[str, ...] = ()

    @cached_property
    def permissions(self) -> Permissions:
        """What the functions may do."""
        return Permissions(self.table)

    @property
    def objects(self) -> Mapping[str, bytes]:
        """The content of the mesh's bucket by key."""
        return self.bucket.objects

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Connect the code of the mesh to this cloud."""
        with (
            isolated(self.allowed_endpoints),
            self.jobs.activate(self.permissions),
            mock.patch.object(clients, "sqs", self._sqs),
            mock.patch.object(clients, "s3", self._s3),
            mock.patch.object(clients, "dynamodb", self._dynamodb),
            mock.patch.object(clients, "dynamodb_without_waiting", self._dynamodb),
            mock.patch.object(clients, "events", self._events),
            mock.patch.object(clients, "cloudwatch", self._cloudwatch),
            mock.patch.object(push_wiring, "PushSender", self.notifications.sender),
            mock.patch.object(gateway_wiring, "build_role_list", lambda *_: ListedRoles()),
            mock.patch.object(sender_wiring, "build_role_list", lambda *_: ListedRoles()),
        ):
            yield

    def perform(self, do: Callable[[], T]) -> T:
        """Do what a client of the services does. The mesh works meanwhile."""
        scheduler = self.simulation.scheduler
        if scheduler.is_in_process:
            return do()
        results: list[T] = []
        errors: list[BaseException] = []

        def body() -> None:
            try:
                results.append(do())
            except BaseException as error:  # noqa: BLE001 - it is that of the client
                errors.append(error)

        with self.activate():
            scheduler.start(body)
            scheduler.run(lambda: bool(results or errors))
        if errors:
            raise errors[0]
        return results[0]

    def finish(self) -> None:
        """Let the processes that are at work end. They go on only in this thread, and the next call may come from another one."""
        scheduler = self.simulation.scheduler
        if scheduler.at_work and not scheduler.is_in_process:
            with self.activate():
                scheduler.run(lambda: scheduler.at_work == 0)

    def request(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], *, user_arn: str, user_id: str
    ) -> dict[str, Any]:
        """Call the gateway as a principal, and return the answer of its function.

        Args:
            user_arn: the ARN of the principal; empty for a call without a signature.

        Raises:
            TestKitError: the process of the function died.
        """
        request = event(method, URL + path, body, headers, user_arn=user_arn, user_id=user_id)
        response = self.perform(lambda: self.gateway.handle(request))
        if response is None:
            raise TestKitError(f"{method} {path}: the gateway died")
        return response

    def run_until_idle(self) -> None:
        """Let the mesh work until no process is at work, and no message waits but the timers of sets.

        Raises:
            TestKitError: a function of the mesh raised, which should never happen.
        """
        with self.activate():
            self.simulation.scheduler.run(lambda: self.is_at_rest)
        self._raise_problems()

    def advance(self, seconds: float) -> None:
        """Let time pass without the scheduled functions.

        Raises:
            TestKitError: a function of the mesh raised, which should never happen.
        """
        scheduler = self.simulation.scheduler
        end = scheduler.seconds + seconds
        with self.activate():
            scheduler.after(seconds, lambda: None)
            scheduler.run(lambda: scheduler.seconds >= end, until=end)
        self._raise_problems()

    @property
    def is_at_rest(self) -> bool:
        """Whether no process is at work, and no message waits but the timers of sets."""
        return self.simulation.scheduler.at_work == 0 and not any(
            message for queue in self.queues.queues.values() for message in queue.messages if _is_alive(queue, message)
        )

    def _raise_problems(self) -> None:
        if self.history.problems:
            raise TestKitError("; ".join(self.history.problems))

    def _sqs(self) -> Guarded:
        process = current_process()
        actor = process.name.partition("/")[0]
        role = names.role_name(self.table.namespace, names.runner_of(actor), REGION)
        client = SqsClient(process, self.queues, f"{role_id(actor)}:{role}")
        return self.permissions.guard(process, client, of_queues)

    def _s3(self) -> Guarded:
        process = current_process()
        return self.permissions.guard(process, S3Client(process, self.bucket), of_objects)

    def _dynamodb(self) -> Guarded:
        process = current_process()
        return self.permissions.guard(process, DynamoClient(process, self.tables), of_items)

    def _events(self) -> Guarded:
        process = current_process()
        return self.permissions.guard(process, EventsClient(process, self.bus), of_events)

    def _cloudwatch(self) -> Guarded:
        return self.permissions.guard(current_process(), NoMetrics(), of_metrics)


def _is_alive(queue: Queue, message: Message) -> bool:
    if queue.max_receives is None:
        return False  # dead letters wait for an operator
    if message.receives:
        return True
    return not isinstance(decode_message(message.body.encode("utf-8", "surrogatepass")), SetDue)


def _with_models(loaded: LoadedMesh, table: MeshTable) -> MeshTable:
    """The table with the schemas of tools that name a model; a synthesis reads them in a process of its own."""
    models = {name: tool.input_schema for name, tool in loaded.mesh.tools.items() if isinstance(tool.input_schema, str)}
    tools = dict(table.tools)
    for tool, model in models.items():
        try:
            with isolated(), CODE_FOLDERS.using(view_of(loaded.code_folder)):
                schema = input_schema(pkgutil.resolve_name(model))
        except Exception as error:
            raise TestKitError(
                f"tools.{tool}.input_schema: the model {model!r} cannot be read: {type(error).__name__}: {error}"
            ) from error
        tools[tool] = structs.replace(tools[tool], input_schema=schema)
    return structs.replace(table, tools=tools)


def _with_operator(table: MeshTable) -> MeshTable:
    """The table in which the user of the test is an operator, who sees the tasks of all senders."""
    return structs.replace(table, operators=(*table.operators, TEST_USER)) if table.operators else table


def deploy(
    loaded: LoadedMesh,
    data_uri: str,
    environment: Mapping[str, str],
    *,
    seed: int,
    start: datetime,
    allowed_endpoints: tuple[str, ...] = (),
) -> Deployment:
    """Deploy a mesh to a new cloud.

    Args:
        data_uri: the base of references.
        environment: variables of all actors, such as the values of secrets.
        seed: decides the order of what happens at the same time.
        start: the virtual time of the start.
        allowed_endpoints: the endpoints that code of the mesh may call.

    Raises:
        TestKitError: the model of a tool cannot be imported.
    """
    table, random = _with_operator(_with_models(loaded, to_table(loaded))), Random(seed)
    faults = PlannedFaults(random, FaultProfile(), namespace=table.namespace)
    simulation = Simulation(Scheduler(limit=MAX_TURNS, start_time=start), faults, random, EventLog())
    history = History()
    tables = MemoryDynamo(new_tables(table))
    write_secrets(tables, table)
    sources = EventSources(simulation, history, {})
    queues = Queues(simulation, history, sources.wake)
    sources.queues = queues

    handlers_view, jobs_view = view_of(loaded.code_folder), view_of(loaded.jobs_folder)

    def new_process(name: str) -> UserProcess:
        actor = name.partition("/")[0]
        section = loaded.mesh.actors.get(actor)
        own = {**section.env, **handler_variables(table.actors[actor])} if section is not None else {}
        common = {**environment, "LAMBDA_TASK_ROOT": str(handlers_view), "ASYA_ACTOR": actor, "ASYA_DATA_URI": data_uri}
        is_heavy = actor in table.actors and table.actors[actor].kind == "spark"
        folder = jobs_view if is_heavy else handlers_view
        return UserProcess(
            name,
            simulation,
            variables={**common, **own},
            folder=folder,
            working_folder=None if is_heavy or section is None else handlers_view,
            faults=faults,
            allowed_endpoints=allowed_endpoints,
        )

    def settings(actor: str) -> Settings:
        return Settings(
            table=table,
            actor=actor,
            region=REGION,
            bucket=BUCKET,
            data_uri=data_uri,
            results_uri=RESULTS_URI,
            queue_url_prefix=QUEUES,
            gateway_url=URL,
            spark=SPARK,
        )

    functions = _Functions(table, queues, sources, settings, new_process)
    for actor in table.actors:
        functions.add_actor(actor)
    functions.add_system_queues()
    system = SystemFunctions(
        simulation, {name: settings(name) for name in registry.of(table).sweeps}, new_process, table
    )
    system.new_services, system.fails_overdue_tasks = TestServices.of, True
    gateway = Gateway(
        table,
        {
            each.name: GatewayFunction(each.name, new_process, started(settings(each.name)))
            for each in registry.functions_of(table)
            if isinstance(each.called_by, Requests)
        },
    )
    notifications = Notifications(simulation, table, settings, new_process, TestServices.of)
    tables.on_write = notifications.changed
    bucket, bus = Bucket(history, {}), EventBus()
    jobs = JobRuns(simulation, table.namespace, bucket, queues, new_process, data_files(loaded, data_uri))
    services = (queues, tables, bucket, gateway, system, sources, bus, jobs, notifications)
    return Deployment(table, simulation, faults, history, *services, allowed_endpoints)


@dataclass
class _UserFunction(Function):
    """A function whose handler is imported with the variables of its actor."""

    new_process: Callable[[str], UserProcess]

    def acquire(self) -> tuple[Process, EntryPoint]:
        with self.new_process(self.actor).as_actor():
            return super().acquire()


@dataclass
class _Functions:
    """Creates the queues and the functions of a mesh."""

    table: MeshTable
    queues: Queues
    sources: EventSources
    settings: Callable[[str], Settings]
    new_process: Callable[[str], UserProcess]

    def add_actor(self, actor: str) -> None:
        """Add an actor with its queue."""
        queues, settings = registry.function_of(actor, self.table).queues, actor_queue(actor, self.table)
        batch = self.table.actors[actor].batch.size if queues is None else queues.batch
        self._add_queue(actor, settings, self._function(actor, batch, settings.function_timeout))

    def add_system_queues(self) -> None:
        """Add the functions of queues that belong to no actor."""
        functions: dict[str, _UserFunction] = {}
        for queue, (function, queues) in registry.queues_of(self.table).items():
            if function.name not in functions:
                functions[function.name] = self._function(function.name, queues.batch, function.timeout)
            self._add_queue(queue, system_queues(self.table)[queue], functions[function.name])

    def _add_queue(self, name: str, settings: QueueSettings, function: Function) -> None:
        queue = names.queue_name(self.table.namespace, name)
        self.queues.queues[queue] = Queue(queue, settings.visibility_timeout, settings.max_receives)
        self.queues.queues[f"{queue}-dlq"] = Queue(f"{queue}-dlq", timings.MARGIN, None)
        self.sources.functions[queue] = function

    def _function(self, actor: str, batch: int, timeout: float) -> _UserFunction:
        return _UserFunction(
            actor=actor,
            settings=self.settings(actor),
            batch_size=batch,
            timeout=timeout,
            concurrency=CONCURRENCY,
            new_process=self.new_process,
            new_services=TestServices.of,
        )
