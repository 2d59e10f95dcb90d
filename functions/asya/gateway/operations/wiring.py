"""Builds the functions of the calls for operators, and holds their Lambda handlers."""

import os
from datetime import timedelta
from functools import partial

from asya.capabilities.dead_letters.aws.queue import DeadLetterQueue
from asya.capabilities.operations.aws.actor_metrics import ActorMetrics
from asya.capabilities.operations.aws.function_logs import FunctionLogs, LoggedLines
from asya.capabilities.operations.aws.job_runs import RunReader
from asya.capabilities.operations.aws.letter_scan import LetterScan
from asya.capabilities.operations.aws.queue_readers import QueueReaders
from asya.capabilities.operations.aws.queue_states import QueueStates
from asya.capabilities.operations.aws.run_logs import RunLogs
from asya.capabilities.operations.aws.run_numbers import RunCounter
from asya.capabilities.operations.prices import prices_of
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.environment import REAL, Environment
from asya.gateway.http.binding import routes_of
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices
from asya.gateway.http.router import HttpRoute
from asya.gateway.operations.dead_letters import DeadLetterRoutes
from asya.gateway.operations.logs import LogRoutes
from asya.gateway.operations.numbers import NumberRoutes
from asya.gateway.operations.runs import RunRoutes
from asya.heavy.aws.drains import Drains
from asya.heavy.aws.heartbeats import Heartbeats
from asya.heavy.aws.hosts import Hosts
from asya.heavy.aws.manifests import Manifests
from asya.heavy.aws.pending import Pending
from asya.heavy.aws.run_records import RunRecords
from asya.heavy.aws.run_results import RunResults
from asya.protocol import names
from asya.sidecar.aws.circuit_breaker import read_circuit
from asya.tasks.aws.index import TaskIndex
from asya.tasks.aws.list_scan import ListScan
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.overdue_tasks import OverdueTasks
from asya.tasks.aws.sweep_marks import SweepMarks
from asya.tasks.aws.tasks import Tasks
from asya.tasks.aws.wiring import build_store


def build_logs(
    settings: Settings, _telemetry: Telemetry, environment: Environment = REAL, lines: LoggedLines | None = None
) -> tuple[HttpRoute, ...]:
    """Build the calls for lines.

    Args:
        lines: the lines of the functions; by default those in CloudWatch Logs.
    """
    calls = LogRoutes(
        mesh=settings.table,
        store=build_store(settings, environment),
        functions=FunctionLogs(clients.logs(), settings.namespace) if lines is None else lines,
        runs=RunLogs(clients.s3(), settings.bucket),
        records=_records(settings),
        environment=environment,
    )
    return routes_of(names.LOGS, settings, [calls])


def _records(settings: Settings) -> RunRecords:
    return RunRecords(clients.dynamodb(), table=settings.table_name("pending"), retention=timedelta(0))


def build_operations(
    settings: Settings,
    telemetry: Telemetry,
    environment: Environment = REAL,
    architecture: str | None = None,
    *,
    on_lambda: bool = True,
) -> tuple[HttpRoute, ...]:
    """Build the calls for job runs, dead letters and numbers.

    Args:
        architecture: that of the Spark application, for prices; None if unknown.
        on_lambda: whether Lambda functions read the queues of the mesh.
    """
    mesh, s3, bucket = settings.table, clients.s3(), settings.bucket
    reader = RunReader(
        namespace=settings.namespace,
        records=_records(settings),
        manifests=Manifests(s3, bucket=bucket),
        results=RunResults(s3, bucket=bucket),
        heartbeats=Heartbeats(s3, bucket=bucket),
    )
    store = build_store(settings, environment)
    tasks = Tasks(store, telemetry.log.warning, threaded=environment.is_threaded)
    client, table = clients.dynamodb(), settings.table_name("tasks")
    index = TaskIndex(client, table, threaded=environment.is_threaded)
    listing = ListScan(index, OverdueTasks(index, store, SweepMarks(client, table)))
    scan = LetterScan(
        lambda actor: DeadLetterQueue(clients.sqs(), settings.dlq_url(actor)),
        environment.monotonic,
        is_threaded=environment.is_threaded,
    )
    return routes_of(
        names.OPERATIONS,
        settings,
        (
            RunRoutes(mesh, reader, prices_of(architecture), bucket),
            DeadLetterRoutes(mesh, tasks, scan),
            NumberRoutes(
                mesh=mesh,
                queues=QueueStates(clients.sqs(), is_threaded=environment.is_threaded),
                queue_url=settings.queue_url,
                dlq_url=settings.dlq_url,
                metrics=ActorMetrics(clients.cloudwatch(), settings.namespace),
                runs=_run_counter(settings),
                circuit=partial(read_circuit, clients.dynamodb(), settings.table_name("breaker")),
                lists=TaskLists(listing, store, tasks),
                readers=_readers(settings, telemetry, environment) if on_lambda else None,
                warn=telemetry.log.warning,
            ),
        ),
    )


def _readers(settings: Settings, telemetry: Telemetry, environment: Environment) -> QueueReaders:
    return QueueReaders(clients.functions(), settings.namespace, environment.monotonic, telemetry.log.warning)


def _run_counter(settings: Settings) -> RunCounter:
    dynamodb, table = clients.dynamodb(), settings.table_name("pending")
    return RunCounter(
        records=_records(settings),
        pending=Pending(dynamodb, clients.s3(), table=table, bucket=settings.bucket),
        hosts=Hosts(dynamodb, table=table, retention=timedelta(0)),
        drains=Drains(dynamodb, table=table),
    )


def _build_operations(own: HttpServices) -> tuple[HttpRoute, ...]:
    architecture = os.environ.get("ASYA_SPARK_ARCHITECTURE")
    return build_operations(own.settings, own.telemetry, own.environment, architecture, on_lambda=own.on_lambda)


def _build_logs(own: HttpServices) -> tuple[HttpRoute, ...]:
    return build_logs(own.settings, own.telemetry, own.environment, own.lines)


operations = HttpEntryPoint(_build_operations)
"""The Lambda handler of the calls for job runs, dead letters and numbers."""
logs = HttpEntryPoint(_build_logs)
"""The Lambda handler of the calls for lines."""
