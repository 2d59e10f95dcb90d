"""Builds the functions for push notifications and holds their Lambda handlers."""

from asya.capabilities.a2a.aws.push_configs import PushConfigStore
from asya.capabilities.a2a.aws.push_sender import SECONDS, PushSender
from asya.capabilities.a2a.aws.push_share_items import PushShares
from asya.capabilities.a2a.lambdas.push import PushDelivery
from asya.capabilities.a2a.lambdas.push_feed import PushFeed
from asya.function.aws import clients
from asya.function.aws.table import Table
from asya.function.lambdas.batch import BatchProcessor
from asya.protocol import names
from asya.sidecar.lambdas.entry_point import ChangesEntryPoint, queue_entry_point
from asya.sidecar.lambdas.services import Services


def build_push(services: Services) -> PushDelivery:
    """Build the function that delivers push notifications."""
    settings = services.settings
    worker = BatchProcessor(clients.sqs(), settings.queue_url(settings.actor), (), services.telemetry)
    return PushDelivery(
        services,
        worker,
        _configs(services),
        PushSender(settings.table.gateway.notification_hosts),
        PushShares(
            Table(clients.dynamodb(), settings.table_name("tasks")),
            services.environment,
            limit=SECONDS,
            warn=services.telemetry.log.warning,
        ),
    )


def build_push_feed(services: Services) -> PushFeed:
    """Build the function that turns changes of tasks into push notifications."""
    return PushFeed(services, _configs(services), clients.sqs(), services.settings.queue_url(names.PUSH))


def _configs(services: Services) -> PushConfigStore:
    settings = services.settings
    return PushConfigStore(clients.dynamodb(), settings.table_name("tasks"), settings.table.retention.tasks)


push = queue_entry_point(build_push)
push_feed = ChangesEntryPoint(build_push_feed)
