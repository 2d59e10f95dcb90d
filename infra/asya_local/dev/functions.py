"""The functions of a mesh without user code, which run in this process: crew, heavy path, reports and sweeps."""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from asya import registry
from asya.protocol import names
from asya.sidecar.lambdas.services import Services
from asya_local.dev.telemetry import DevTelemetry

if TYPE_CHECKING:
    from asya.function.aws.settings import Settings
    from asya.function.lambdas.batch import BatchResponse
    from asya.sidecar.lambdas.entry_point import QueueEntryPoint, ScheduleEntryPoint
    from asya_local.dev.deployment import Deployment

Tell = Callable[[str, str], None]


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


def build_function(settings: Settings, tell: Tell) -> Callable[[Mapping[str, Any]], BatchResponse]:
    """Build the function of an actor without a handler, or of a queue of the mesh. It processes one batch per call."""
    function = registry.function_of(settings.actor, settings.table)
    assert function.timeout is not None, f"{settings.actor} has a handler"
    entry_point: QueueEntryPoint = pkgutil.resolve_name(function.entry_point)
    invoke, timeout = entry_point.start(DevServices(settings, tell=tell)), function.timeout
    return lambda event: invoke(event, _Context(time.monotonic() + timeout))


def sweep_all(mesh: Deployment, tell: Tell) -> None:
    """Run each scheduled function of a mesh once; one that fails stops no other."""
    for name in registry.sweeps_of(mesh.table):
        entry_point: ScheduleEntryPoint = pkgutil.resolve_name(registry.of(mesh.table).functions[name].entry_point)
        try:
            entry_point.sweep(DevServices(mesh.settings(name), tell=tell))
        except Exception as error:  # noqa: BLE001 - the next tick runs it again
            tell("error", f"{name}: failed: {type(error).__name__}: {error}")
