"""Builds the functions of the calls about a mesh, and holds their Lambda handlers."""

import os
from datetime import timedelta
from functools import partial

from asya.capabilities.dead_letters.aws.letters import DeadLetterQueue
from asya.capabilities.operations.aws.job_runs import RunReader
from asya.capabilities.operations.aws.letter_scan import LetterScan
from asya.capabilities.operations.aws.logs import FunctionLogs, RunLogs
from asya.capabilities.operations.aws.mesh_numbers import ActorMetrics, QueueReaders, QueueStates, RunCounter
from asya.capabilities.operations.prices import prices_of
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.gateway.access import AccessRules
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices, routes_of
from asya.gateway.http.router import HttpRoute
from asya.gateway.operations.dead_letters import DeadLetterRoutes
from asya.gateway.operations.failures import FailureRoutes
from asya.gateway.operations.logs import LogRoutes
from asya.gateway.operations.numbers import NumberRoutes
from asya.gateway.operations.runs import RunRoutes
from asya.heavy.aws.drains import Drains
from asya.heavy.aws.pending import Pending
from asya.heavy.aws.resident_runs import Residents
from asya.heavy.aws.run_files import Heartbeats, Manifests, RunResults
from asya.heavy.aws.run_records import RunRecords
from asya.protocol import names
from asya.sidecar.aws.circuit_breaker import read_circuit
from asya.tasks.aws.failure_groups import Failures
from asya.tasks.aws.lists import build_lists
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.task_store import TaskStore


def build_logs(own: HttpServices) -> tuple[HttpRoute, ...]:
    """Build the calls for lines."""
    return routes_of(names.LOGS, own.settings, [_lines(own, StoredTasks(own).store)])


def _lines(own: HttpServices, store: TaskStore) -> LogRoutes:
    settings = own.settings
    return LogRoutes(
        mesh=settings.table,
        store=store,
        functions=FunctionLogs(clients.logs(), settings.namespace, own.environment.now)
        if own.lines is None
        else own.lines,
        runs=RunLogs(clients.s3(), settings.bucket),
        records=_records(settings),
        environment=own.environment,
    )


def _records(settings: Settings) -> RunRecords:
    return RunRecords(clients.dynamodb(), table=settings.table_name(names.PENDING_TABLE), retention=timedelta(0))


def build_operations(own: HttpServices) -> tuple[HttpRoute, ...]:
    """Build the calls for lines, job runs, dead letters, numbers and failures."""
    settings, environment = own.settings, own.environment
    architecture = os.environ.get("ASYA_SPARK_ARCHITECTURE")  # of the Spark application, for prices
    mesh, s3, bucket = settings.table, clients.s3(), settings.bucket
    reader = RunReader(
        namespace=settings.namespace,
        records=_records(settings),
        manifests=Manifests(s3, bucket=bucket),
        results=RunResults(s3, bucket=bucket),
        heartbeats=Heartbeats(s3, bucket=bucket),
    )
    stored = StoredTasks(own)
    task_lists = build_lists(stored)
    scan = LetterScan(
        lambda actor: DeadLetterQueue(clients.sqs(), settings.dlq_url(actor)),
        environment.monotonic,
        is_threaded=environment.is_threaded,
    )
    return routes_of(
        names.OPERATIONS,
        settings,
        (
            _lines(own, stored.store),
            FailureRoutes(Failures(task_lists), AccessRules(mesh, settings.account, settings.region)),
            RunRoutes(mesh, reader, prices_of(architecture), bucket),
            DeadLetterRoutes(mesh, stored.tasks, scan),
            NumberRoutes(
                mesh=mesh,
                queues=QueueStates(clients.sqs(), is_threaded=environment.is_threaded),
                queue_url=settings.queue_url,
                dlq_url=settings.dlq_url,
                metrics=ActorMetrics(clients.cloudwatch(), settings.namespace),
                runs=_run_counter(settings),
                circuit=partial(read_circuit, clients.dynamodb(), settings.table_name("breaker")),
                lists=task_lists,
                readers=_readers(own) if own.on_lambda else None,
                warn=own.warn,
            ),
        ),
    )


def _readers(own: HttpServices) -> QueueReaders:
    return QueueReaders(clients.functions(), own.settings.namespace, own.environment.monotonic, own.warn)


def _run_counter(settings: Settings) -> RunCounter:
    dynamodb, table = clients.dynamodb(), settings.table_name(names.PENDING_TABLE)
    return RunCounter(
        records=_records(settings),
        pending=Pending(dynamodb, clients.s3(), table=table, bucket=settings.bucket),
        residents=Residents(dynamodb, table=table, retention=timedelta(0)),
        drains=Drains(dynamodb, table=table),
    )


operations = HttpEntryPoint(build_operations)
"""The Lambda handler of the calls about a mesh."""
logs = HttpEntryPoint(build_logs)
"""The Lambda handler of the calls for lines in a mesh of many actors."""
