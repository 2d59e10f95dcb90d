"""The functions of a mesh without user code, which run in this process: crew, heavy path, reports and sweeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from asya.crew.lambdas.wiring import build_checkpoint, build_sink, build_sump
from asya.dead_letters import letters
from asya.dead_letters.lambdas.wiring import build_dlq
from asya.fan_in.lambdas import wiring as fan_in
from asya.gateway.a2a.lambdas.wiring import build_push
from asya.gateway.lambdas.wiring import build_deadline_sweep, build_report_queues
from asya.pause.lambdas import wiring as pause
from asya.protocol import names
from asya.sidecar.lambdas.services import Services
from asya.spark.lambdas.complete import Completion
from asya.spark.lambdas.services import SparkServices
from asya.spark.lambdas.wiring import build_dispatch, build_enqueue, build_reconcile
from asya.triggers.lambdas.wiring import build_backfill_sweep, build_lane_sweep, build_slot_sweep, build_triggers
from asya_infra import timings
from asya_local.dev.telemetry import DevTelemetry

if TYPE_CHECKING:
    from asya.messaging.aws.settings import Settings
    from asya_local.dev.deployment import Deployment

Tell = Callable[[str, str], None]


class Function(Protocol):
    """Processes the batches of a queue."""

    def process(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Process a batch and name the messages that stay on the queue."""


@dataclass(frozen=True)
class DevServices(Services):
    """The services of one function in this process."""

    tell: Tell = print

    @cached_property
    def telemetry(self) -> Any:
        """See `Services`."""
        return DevTelemetry(self.settings.actor, self._only_news)

    def _only_news(self, level: str, text: str) -> None:
        # The author reads of each end from its report.
        if not text.startswith(f"{names.SUMP}: envelope failed"):
            self.tell(level, text)


@dataclass(frozen=True)
class _Context:
    """Lambda's context of an invocation that begins now."""

    ends_at: float

    def get_remaining_time_in_millis(self) -> int:
        """Return the time until the timeout."""
        return int((self.ends_at - time.monotonic()) * 1000)


@dataclass(frozen=True)
class _CompletionFunction:
    services: Services

    def process(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Process a batch."""
        ends_at = time.monotonic() + timings.COMPLETION_TIMEOUT
        return Completion(SparkServices(self.services), _Context(ends_at)).process(event)


_BUILDERS: Mapping[str, Callable[[Services], Function]] = {
    names.SINK: build_sink,
    names.SUMP: build_sump,
    names.CHECKPOINT: build_checkpoint,
    names.RESUME: pause.build_resume,
    names.REPORTS: build_report_queues,
    names.PUSH: build_push,
    names.TRIGGERS: build_triggers,
    names.DISPATCH: build_dispatch,
    names.COMPLETION: _CompletionFunction,
}
_BY_KIND: Mapping[str, Callable[[Services], Function]] = {
    "spark": build_enqueue,
    "fan_in": fan_in.build_fan_in,
    "pause": pause.build_pause,
    "wait": pause.build_wait,
}


def build_function(settings: Settings, tell: Tell) -> Function:
    """Build the function of an actor without a handler, or of a queue of the mesh."""
    services = DevServices(settings, tell=tell)
    if settings.actor in _BUILDERS:
        return _BUILDERS[settings.actor](services)
    return _BY_KIND[settings.table.actors[settings.actor].kind](services)


def sweep_all(mesh: Deployment, tell: Tell) -> None:
    """Run each scheduled function of a mesh once; one that fails stops no other."""
    for name, sweep in _sweeps(mesh).items():
        try:
            sweep(DevServices(mesh.settings(name), tell=tell))
        except Exception as error:  # noqa: BLE001 - the next tick runs it again
            tell("error", f"{name}: failed: {type(error).__name__}: {error}")


def _sweeps(mesh: Deployment) -> dict[str, Callable[[Services], None]]:
    kinds = {actor.kind for actor in mesh.table.actors.values()}
    sweeps: dict[str, Callable[[Services], None]] = {
        names.TASK_SWEEP: _sweep_tasks,
        names.DLQ: lambda services: build_dlq(services).scan(letters.watched_actors(mesh.table)),
        names.FAN_IN_SWEEP: lambda services: fan_in.build_sweep(services).sweep(),
        names.PAUSE_SWEEP: lambda services: pause.build_sweep(services).sweep(),
    }
    if "spark" in kinds:
        sweeps[names.RECONCILE] = lambda services: build_reconcile(services).sweep()
    return sweeps


def _sweep_tasks(services: Services) -> None:
    build_slot_sweep(services).sweep()
    build_backfill_sweep(services).sweep()
    build_deadline_sweep(services).sweep()
    build_lane_sweep(services).sweep()
