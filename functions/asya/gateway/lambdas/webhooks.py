"""Builds the function x-hooks, which takes webhooks, and holds its Lambda handler."""

from asya.capabilities.triggers.aws.webhook_keys import WebhookKeys, read_secret
from asya.capabilities.triggers.aws.webhook_queue import WebhookMemory, WebhookQueue
from asya.function.aws import clients
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices, routes_of
from asya.gateway.http.router import HttpRoute
from asya.gateway.routes.webhooks import WebhookRoutes
from asya.protocol import names


def build_webhooks(own: HttpServices) -> tuple[HttpRoute, ...]:
    """Build the call of webhooks."""
    settings = own.settings
    calls = WebhookRoutes(
        mesh=settings.table,
        keys=WebhookKeys(own.read_secret or read_secret, own.environment, own.warn),
        queue=WebhookQueue(clients.sqs(), settings.queue_url(names.TRIGGERS), clients.s3(), settings.bucket),
        memory=WebhookMemory(clients.dynamodb(), settings.table_name("tasks")),
        telemetry=own.telemetry,
    )
    return routes_of(names.WEBHOOKS, settings, [calls])


webhooks = HttpEntryPoint(build_webhooks)
"""The Lambda handler of webhooks."""
