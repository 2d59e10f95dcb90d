"""Builds the stream function and holds its Lambda handler."""

from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.aws.telemetry import Telemetry
from asya.function.aws.token_keys import TokenKeys
from asya.function.lambdas.environment import REAL, Environment
from asya.gateway.access import AccessRules
from asya.gateway.http.binding import routes_of
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices
from asya.gateway.http.router import HttpRoute
from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.routes import StreamRoutes
from asya.protocol import names
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.wiring import build_tasks


def build_streams(settings: Settings, telemetry: Telemetry, environment: Environment = REAL) -> StreamRoutes:
    """Build what answers streams and creates stream tokens."""
    tasks = build_tasks(settings, telemetry.log.warning, environment)
    partials = PartialStore(clients.dynamodb(), settings.table_name("tasks"), environment.sleep)
    return StreamRoutes(
        namespace=settings.namespace,
        tasks=tasks,
        poller=EventPoller(tasks, partials, environment),
        access=AccessRules(settings.table, settings.account, settings.region),
        keys=TokenKeys(clients.kms(), settings.token_key or ""),
        stream_url=settings.stream_url,
    )


def stream_routes(settings: Settings, streams: StreamRoutes) -> tuple[HttpRoute, ...]:
    """Return the routes of streams and stream tokens."""
    return routes_of(names.GATEWAY_STREAM, settings, [streams])


def _build(own: HttpServices) -> tuple[HttpRoute, ...]:
    return stream_routes(own.settings, build_streams(own.settings, own.telemetry, own.environment))


stream = HttpEntryPoint(_build)
"""The Lambda handler of the stream function."""
