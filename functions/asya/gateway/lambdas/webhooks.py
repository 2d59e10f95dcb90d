"""Builds the function x-hooks, which takes webhooks, and holds its Lambda handler."""

from collections.abc import Callable

from asya.capabilities.triggers.aws.webhook_keys import WebhookKeys, read_secret
from asya.capabilities.triggers.aws.webhook_memory import WebhookMemory
from asya.capabilities.triggers.aws.webhook_queue import WebhookQueue
from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.aws.telemetry import Telemetry
from asya.function.lambdas.environment import REAL, Environment
from asya.gateway.http.binding import routes_of
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices
from asya.gateway.http.router import HttpRoute
from asya.gateway.routes.webhooks import WebhookRoutes
from asya.protocol import names


def build_webhooks(
    settings: Settings,
    telemetry: Telemetry,
    environment: Environment = REAL,
    read: Callable[[str], str] = read_secret,
) -> WebhookRoutes:
    """Build the call of webhooks.

    Args:
        settings: the settings of the function.
        telemetry: its logs and metrics.
        environment: its clock.
        read: reads the text of a secret.
    """
    return WebhookRoutes(
        mesh=settings.table,
        keys=WebhookKeys(read, environment, telemetry.log.warning),
        queue=WebhookQueue(clients.sqs(), settings.queue_url(names.TRIGGERS), clients.s3(), settings.bucket),
        memory=WebhookMemory(clients.dynamodb(), settings.table_name("tasks")),
        telemetry=telemetry,
    )


def _build(own: HttpServices) -> tuple[HttpRoute, ...]:
    calls = build_webhooks(own.settings, own.telemetry, own.environment, own.read_secret or read_secret)
    return routes_of(names.WEBHOOKS, own.settings, [calls])


webhooks = HttpEntryPoint(_build)
"""The Lambda handler of webhooks."""
