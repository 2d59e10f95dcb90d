"""The formats of a stream: the current one and the two legacy ones (`protocol §13`, `§14`)."""

from collections.abc import Callable
from dataclasses import dataclass

from asya.capabilities.legacy.tasks import legacy_envelope, legacy_job
from asya.gateway.streams import sse
from asya.gateway.streams.new_events import StreamEvent
from asya.protocol.exact_json import encode_json
from asya.tasks.view import TaskView


@dataclass(frozen=True, slots=True)
class StreamFormat:
    """Encodes stream events.

    Attributes:
        data: Returns the data of an event.
        has_partials: Whether the format has partials.
    """

    data: Callable[[StreamEvent], object]
    has_partials: bool = True

    def encode(self, event: StreamEvent) -> str:
        """Return an event as text."""
        return sse.event(event.type, event.id, encode_json(self.data(event)))


def _legacy(view: Callable[[TaskView], object]) -> StreamFormat:
    def data(event: StreamEvent) -> object:
        return view(event.task) if event.task else None

    return StreamFormat(data, has_partials=False)


CURRENT = StreamFormat(lambda event: event.data)
LEGACY_ENVELOPES = _legacy(legacy_envelope)
LEGACY_JOBS = _legacy(legacy_job)
