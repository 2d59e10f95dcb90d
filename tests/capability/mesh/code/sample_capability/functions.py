"""What Lambda calls."""

from dataclasses import dataclass

from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.gateway.http.entry_point import HttpEntryPoint, HttpServices, routes_of
from asya.gateway.http.router import HttpRoute
from asya.sidecar.lambdas.entry_point import queue_entry_point, schedule_entry_point
from asya.sidecar.lambdas.services import Services
from sample_capability.actor import StampActor
from sample_capability.calls import StampCalls
from sample_capability.options import STAMP
from sample_capability.store import Stamps


@dataclass(frozen=True)
class _Count:
    services: Services

    def sweep(self) -> None:
        """Count the stamps."""
        counts = _stamps(self.services.settings).count()
        self.services.telemetry.measure("StampsCounted", sum(counts.values()), "Count")
        self.services.finish_sweep()
        self.services.telemetry.flush()


def _stamps(settings: Settings) -> Stamps:
    return Stamps(clients.s3(), settings.bucket)


def _actor(services: Services) -> StampActor:
    settings = services.settings
    return StampActor(services, _stamps(settings), STAMP.of(settings.table.actors[settings.actor]))


def _routes(own: HttpServices) -> tuple[HttpRoute, ...]:
    return routes_of(own.settings.actor, own.settings, [StampCalls(_stamps(own.settings))])


stamp = queue_entry_point(_actor)
count = schedule_entry_point(_Count)
calls = HttpEntryPoint(_routes)
