"""The simulated cloud: the queues, tables, bucket, functions and gateway of a mesh."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any
from unittest import mock

from msgspec import structs

from asya import registry
from asya.function.aws import clients
from asya.function.aws.claim_check import ClaimCheck
from asya.function.aws.settings import Settings
from asya.function.lambdas import function
from asya.gateway.lambdas import wiring as gateway_wiring
from asya.protocol import names
from asya.protocol.keys import INBOX_PREFIX
from asya.protocol.mesh_table import QUEUE_RECEIVES, MeshTable
from asya.senders.lambdas import wiring as sender_wiring
from asya.testing.dynamo.queries import new_tables
from asya.testing.dynamo.tables import MemoryDynamo
from asya.testing.dynamo.values import Item
from asya.testing.permissions import Guarded, Permissions, of_events, of_items, of_objects, of_queues
from asya.testing.services.clients import Bucket, DynamoClient, EventBus, EventsClient, S3Client
from asya.testing.services.event_source import EventSources
from asya.testing.services.faults import FaultProfile, Faults
from asya.testing.services.functions import BUCKET, QUEUES, REGION, Function, SystemFunctions
from asya.testing.services.gateway import URL, GatewayFunction, started
from asya.testing.services.job_service import JobFaults
from asya.testing.services.process import Process, Simulation, current_process
from asya.testing.services.queues import Message, Queue, Queues, SqsClient
from asya.testing.services.roles import ListedRoles, role_id, write_secrets
from asya.testing.services.scheduler import EventLog, Scheduler
from tests.simulation.checks.acks import AckChecks
from tests.simulation.checks.calls import CallChecks
from tests.simulation.checks.ledger import SYSTEM_QUEUES, Ledger
from tests.simulation.checks.report_queues import MAX_RECEIVES as REPORT_RECEIVES
from tests.simulation.checks.report_queues import REPORT_QUEUES, with_unreadable_report
from tests.simulation.checks.sends import SendChecks
from tests.simulation.checks.writes import WriteChecks
from tests.simulation.ends.actors import end_handler_of
from tests.simulation.heavy.side import SPARK, HeavySide
from tests.simulation.inputs.handlers import install_handlers
from tests.simulation.inputs.meshes import SimulatedMesh
from tests.simulation.inputs.programs import Program, handler_of
from tests.simulation.small_messages import MESSAGE_LIMIT, OFFLOAD_FROM, SmallMessages
from tests.simulation.state_reads import StateReads

CREW_TIMEOUT = 60.0
# Seconds that a function's timeout exceeds its work, and that the visibility timeout exceeds the function's timeout.
MARGIN = 30.0


def _small_inbox(own: function.Function) -> ClaimCheck:
    return ClaimCheck(clients.s3(), own.settings.bucket, limit=OFFLOAD_FROM, prefix=INBOX_PREFIX)


@dataclass
class Cloud:
    """A deployed mesh.

    Attributes:
        api: the gateway's function.
        system: the scheduled functions.
        heavy: EMR Serverless and its jobs.
        bus: EventBridge's default bus.
        sources: the functions of all queues.
        settings: makes the settings of a function, of this mesh or of another version of it.
        add_actor: creates the queue and the function of an actor.
    """

    simulation: Simulation
    mesh: SimulatedMesh
    bucket: Bucket
    tables: MemoryDynamo
    queues: Queues
    ledger: Ledger
    api: GatewayFunction
    system: SystemFunctions
    heavy: HeavySide
    bus: EventBus
    sources: EventSources
    settings: Callable[..., Settings]
    add_actor: Callable[[str, MeshTable], None]

    def queue(self, actor: str) -> str:
        """Return the name of an actor's queue."""
        return names.queue_name(self.mesh.table.namespace, actor)

    def new_process(self, name: str) -> Process:
        """Create a process of the cloud."""
        return Process(name, self.simulation)

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Connect the mesh's code to this cloud."""
        handlers = {name: self._handler(name, program) for name, program in self.mesh.programs.items()}
        with (
            install_handlers(handlers),
            self.heavy.activate(handlers, self.mesh.programs, CallChecks(self.ledger), self.permissions),
            mock.patch.object(clients, "sqs", self._sqs),
            mock.patch.object(clients, "s3", self._s3),
            mock.patch.object(clients, "dynamodb", lambda: self._dynamodb(DynamoClient)),
            mock.patch.object(clients, "dynamodb_without_waiting", lambda: self._dynamodb(StateReads)),
            mock.patch.object(function.Function, "inbox", property(_small_inbox)),
            mock.patch.object(gateway_wiring, "build_role_list", lambda *_: ListedRoles()),
            mock.patch.object(sender_wiring, "build_role_list", lambda *_: ListedRoles()),
            mock.patch.object(clients, "events", self._events),
        ):
            yield

    def _handler(self, actor: str, program: Program) -> Callable[[Any], Any]:
        build = end_handler_of if self.mesh.table.actors[actor].kind == "end" else handler_of
        return build(program, CallChecks(self.ledger))

    @cached_property
    def permissions(self) -> Permissions:
        """What the functions may do. The ledger's table has the actors of all versions of the mesh."""
        return Permissions(self.ledger.mesh)

    def _sqs(self) -> Guarded:
        process = current_process()
        actor = process.name.partition("/")[0]
        role = names.role_name(self.mesh.table.namespace, actor, REGION)
        client = SqsClient(process, self.queues, f"{role_id(actor)}:{role}")
        return self.permissions.guard(process, client, of_queues)

    def _s3(self) -> Guarded:
        process = current_process()
        return self.permissions.guard(process, S3Client(process, self.bucket), of_objects)

    def _events(self) -> Guarded:
        process = current_process()
        return self.permissions.guard(process, EventsClient(process, self.bus), of_events)

    def _dynamodb(self, kind: type[DynamoClient]) -> Guarded:
        process = current_process()
        return self.permissions.guard(process, kind(process, self.tables), of_items)


class _Observer:
    """Passes messages, objects and items to the checks."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._sends = SendChecks(ledger)
        self._acks = AckChecks(ledger)
        self._writes = WriteChecks(ledger)
        self.on_object: Callable[[str], None] = lambda _: None

    def accepted(self, message: Message, sender: Process | None) -> None:
        self._sends.accepted(message, sender)

    def deleted(self, message: Message, by: Process | None) -> None:
        if by is not None and by.invocation is None:  # an operator redrove it
            self._ledger.record_redrive(message)
        self._acks.deleted(message, by.invocation if by is not None else None)

    def dead_lettered(self, message: Message) -> None:
        self._ledger.dead_letters.append(message)

    def given_up(self, message: Message, sender: Process | None) -> None:
        self._ledger.dead_letters.append(message)
        self._sends.given_up(message, sender.invocation if sender is not None else None)

    def moved(self, message: Message) -> None:
        self._ledger.record_move(message)

    def crashed(self, messages: list[Message], process: Process) -> None:
        self._ledger.died_with.update(message.message_id for message in messages)
        if process.crash_cause:
            for message in messages:
                self._ledger.crash_causes[message.message_id].add(process.crash_cause)
            self._sends.killed(messages, process.crash_cause)

    def failed(self, process: Process, error: Exception) -> None:
        self._ledger.report_violation(f"{process.name} raised {error!r}")

    def put(self, key: str, body: bytes, by: Process, before: bytes | None) -> None:
        self._writes.object_written(key, body, by, before)
        self.on_object(key)

    def removed(self, key: str, body: bytes, by: Process) -> None:
        self._writes.object_removed(key, body, by)

    def item(self, table: str, before: Item | None, after: Item | None) -> None:
        self._writes.item_written(table, before, after)


def deploy(mesh: SimulatedMesh, random: Random, profile: FaultProfile, job_faults: JobFaults | None = None) -> Cloud:
    """Deploy a mesh to a new cloud."""
    simulation = Simulation(Scheduler(), Faults(random, profile), random, EventLog())
    namespace = mesh.table.namespace
    tables = MemoryDynamo(new_tables(mesh.table), page_size=random.choice((2, 1000)))
    write_secrets(tables, mesh.table)
    objects: dict[str, bytes] = {}
    views = {kind: tables.tables[names.table_name(namespace, kind)].items for kind in registry.of(mesh.table).tables}
    # A later version of the mesh adds its actors to the ledger's table only.
    ledger = Ledger(simulation, structs.replace(mesh.table, actors=dict(mesh.table.actors)), objects, views)
    simulation.new_invocation = ledger.new_invocation
    ledger.runs.is_poison = mesh.is_poison
    ledger.jobs_are_fault_free = job_faults is None or job_faults.is_fault_free
    observer = _Observer(ledger)
    tables.on_write = observer.item
    bucket = Bucket(observer, objects)
    sources = EventSources(simulation, observer, {})
    queues = Queues(simulation, observer, sources.wake, message_limit=MESSAGE_LIMIT)
    sources.queues = queues
    ledger.message_count = lambda name: len(queues.queues[name].messages)

    def new_process(name: str) -> Process:
        return Process(name, simulation)

    def settings(actor: str, table: MeshTable = mesh.table, *, is_gateway: bool = False) -> Settings:
        return Settings(
            table=table,
            actor=actor,
            region=REGION,
            bucket=BUCKET,
            data_uri=f"s3://{BUCKET}/data/",
            results_uri=f"s3://{BUCKET}/results/",
            queue_url_prefix=QUEUES,
            gateway_url=None if is_gateway else URL,
            spark=SPARK,
        )

    api = GatewayFunction("x-gateway-api", new_process, started(settings("x-gateway-api", is_gateway=True)))

    def add_actor(actor: str, table: MeshTable) -> None:
        spec = table.actors[actor]
        is_crew = spec.kind in ("crew", "spark")  # the function of a heavy actor runs no user code
        batch = random.choice((1, 3, 10)) if is_crew else spec.batch.size
        timeout = (CREW_TIMEOUT if is_crew else spec.timeout * batch) + MARGIN
        name = names.queue_name(namespace, actor)
        queues.queues[name] = Queue(name, timeout + MARGIN, spec.queue_receives)
        queues.queues[f"{name}-dlq"] = Queue(f"{name}-dlq", MARGIN, None)
        sources.functions[name] = Function(
            actor=actor,
            settings=settings(actor, table),
            batch_size=batch,
            timeout=timeout,
            concurrency=random.choice((1, 2, 5)),
            new_process=new_process,
            new_services=SmallMessages.of,
        )

    for actor in mesh.table.actors:
        add_actor(actor, mesh.table)
    for name in SYSTEM_QUEUES if mesh.is_heavy else ():
        queue = names.queue_name(namespace, name)
        timeout = random.choice((70.0, 300.0))
        queues.queues[queue] = Queue(queue, timeout + MARGIN, QUEUE_RECEIVES)
        queues.queues[f"{queue}-dlq"] = Queue(f"{queue}-dlq", MARGIN, None)
        sources.functions[queue] = Function(
            actor=name,
            settings=settings(name),
            batch_size=random.choice((1, 10)),
            timeout=timeout,
            concurrency=random.choice((1, 2, 5)),
            new_process=new_process,
            new_services=SmallMessages.of,
        )
    reports = Function(
        actor=names.REPORTS,
        settings=settings(names.REPORTS),
        batch_size=random.choice((1, 10)),
        timeout=CREW_TIMEOUT,
        concurrency=random.choice((1, 2, 5)),
        new_process=new_process,
        new_services=SmallMessages.of,
    )
    for name in REPORT_QUEUES:
        queue = names.queue_name(namespace, name)
        queues.queues[queue] = Queue(queue, CREW_TIMEOUT + MARGIN, REPORT_RECEIVES)
        queues.queues[f"{queue}-dlq"] = Queue(f"{queue}-dlq", MARGIN, None)
        sources.functions[queue] = reports
    queues.change_report = lambda body: with_unreadable_report(body) if random.random() < 0.1 else body
    heavy = HeavySide(simulation, job_faults or JobFaults(), bucket, new_process, ledger, queues)
    if any(actor.spark is not None and actor.spark.linger for actor in mesh.table.actors.values()):
        observer.on_object = heavy.service.object_written
    system = SystemFunctions(
        simulation, {name: settings(name) for name in registry.of(ledger.mesh).sweeps}, new_process, ledger.mesh
    )
    return Cloud(
        simulation,
        mesh,
        bucket,
        tables,
        queues,
        ledger,
        api,
        system,
        heavy,
        EventBus(),
        sources,
        settings,
        add_actor,
    )
