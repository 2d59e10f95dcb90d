"""The points at which a test can inject faults. The stand-in has no faults of its own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asya_local.emr.capacity import Limits
    from asya_local.emr.settings import EmrSettings


class Faults:
    """Injects no faults; a test's module has a subclass of this name. Called from many threads."""

    def __init__(self, settings: EmrSettings) -> None:
        self.settings = settings

    def throttles_call(self) -> bool:
        """Return whether to throttle the current call."""
        return False

    def repeats_call(self) -> bool:
        """Return whether the current call arrives twice."""
        return False

    def loses_response(self) -> bool:
        """Return whether to close the connection instead of answering the current call."""
        return False

    def response_delay(self) -> float:
        """Return the seconds by which to delay the response of the current call."""
        return 0.0

    def start_rate(self) -> tuple[float, int]:
        """Return the quota of StartJobRun: calls per second and burst."""
        return self.settings.starts_per_second, self.settings.start_burst

    def limits(self, limits: Limits) -> Limits:
        """Return the limits to use instead of the application's own."""
        return limits

    def exceeds_capacity(self) -> bool:
        """Return whether to fail the run that leaves the queue, for lack of workers."""
        return False

    def kill_delay(self) -> float | None:
        """Return the seconds after which to kill the driver that starts now, or None."""
        return None

    def executor_delay(self) -> float:
        """Return the seconds during which the driver that starts now has no executor."""
        return 0.0

    def executor_loss(self) -> float | None:
        """Return the seconds after which the driver that starts now loses its executors once, or None."""
        return None

    def event_delays(self) -> Sequence[float]:
        """Return the delay of each copy of the current event, in seconds."""
        return (0.0,)


def load_faults(settings: EmrSettings) -> Faults:
    """Create the class `Faults` of the module that the settings name.

    Raises:
        TypeError: The class is not a subclass of `Faults`.
    """
    if not settings.faults:
        return Faults(settings)
    faults = importlib.import_module(settings.faults).Faults(settings)
    if not isinstance(faults, Faults):
        raise TypeError(f"{settings.faults}.Faults is not a subclass of {Faults.__module__}.Faults")
    return faults
