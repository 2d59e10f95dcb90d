"""Builds the stream function and holds its Lambda handler."""

from asya.function.aws import clients
from asya.function.aws.token_keys import TokenKeys
from asya.function.lambdas.function import Function
from asya.gateway.access import AccessRules
from asya.gateway.http.binding import routes_of
from asya.gateway.http.entry_point import HttpEntryPoint
from asya.gateway.http.router import HttpRoute
from asya.gateway.streams.event_poller import EventPoller
from asya.gateway.streams.routes import StreamRoutes
from asya.protocol import names
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.stored_tasks import StoredTasks


def build_streams(own: Function) -> StreamRoutes:
    """Build what answers streams and creates stream tokens."""
    settings, tasks = own.settings, StoredTasks(own).tasks
    partials = PartialStore(clients.dynamodb(), settings.table_name("tasks"), own.environment.sleep)
    return StreamRoutes(
        namespace=settings.namespace,
        tasks=tasks,
        poller=EventPoller(tasks, partials, own.environment),
        access=AccessRules(settings.table, settings.account, settings.region),
        keys=TokenKeys(clients.kms(), settings.token_key or ""),
        stream_url=settings.stream_url,
    )


def stream_routes(own: Function, streams: StreamRoutes | None = None) -> tuple[HttpRoute, ...]:
    """Return the routes of streams and stream tokens."""
    return routes_of(names.GATEWAY_STREAM, own.settings, [streams or build_streams(own)])


stream = HttpEntryPoint(stream_routes)
"""The Lambda handler of the stream function."""
