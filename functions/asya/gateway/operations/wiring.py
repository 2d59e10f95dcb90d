"""Builds the functions of the calls for operators, and holds their Lambda handlers."""

import os
from datetime import timedelta
from functools import cache
from typing import Any

from asya.gateway.access import AccessRules
from asya.gateway.http.router import answer
from asya.gateway.operations.logs import LogRoutes
from asya.messaging.aws import clients
from asya.messaging.aws.settings import Settings, load_settings
from asya.messaging.aws.telemetry import Telemetry
from asya.messaging.lambdas.environment import REAL, Environment
from asya.operations.aws.function_logs import FunctionLogs, LoggedLines
from asya.operations.aws.run_logs import RunLogs
from asya.spark.aws.run_records import RunRecords
from asya.tasks.aws.wiring import build_store


def build_logs(
    settings: Settings, _telemetry: Telemetry, environment: Environment = REAL, lines: LoggedLines | None = None
) -> LogRoutes:
    """Build the calls for lines.

    Args:
        lines: the lines of the functions; by default those in CloudWatch Logs.
    """
    return LogRoutes(
        mesh=settings.table,
        store=build_store(settings, environment),
        access=AccessRules(settings.table, settings.account, settings.region),
        functions=FunctionLogs(clients.logs(), settings.namespace) if lines is None else lines,
        runs=RunLogs(clients.s3(), settings.bucket),
        records=_records(settings),
        environment=environment,
    )


def _records(settings: Settings) -> RunRecords:
    return RunRecords(clients.dynamodb(), table=settings.table_name("pending"), retention=timedelta(0))


@cache
def _logs() -> tuple[LogRoutes, Telemetry]:
    settings = load_settings(os.environ)
    telemetry = Telemetry(settings.namespace, settings.actor)
    return build_logs(settings, telemetry), telemetry


def logs(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Handle a request for lines (Lambda handler)."""
    routes, telemetry = _logs()
    return answer(event, routes.routes(REAL.now()), telemetry.log)
