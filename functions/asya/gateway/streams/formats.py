"""What is shown of a task in a stream, in the words of each generation (`protocol §13`, `§14`)."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from asya.gateway.streams import sse
from asya.gateway.streams.new_events import StreamEvent
from asya.legacy.tasks import legacy_envelope, legacy_job
from asya.tasks.view import TaskView


@dataclass(frozen=True, slots=True)
class StreamFormat:
    """How an event is written.

    Attributes:
        data: what is shown of an item.
        has_partials: whether what handlers say is shown at all.
    """

    data: Callable[[StreamEvent], object]
    has_partials: bool = True

    def event(self, item: StreamEvent) -> str:
        """The text of an event."""
        return sse.event(item.event, item.id, msgspec.json.encode(self.data(item)))


def _older(show: Callable[[TaskView], object]) -> StreamFormat:
    def data(item: StreamEvent) -> object:
        return show(item.task) if item.task else None  # what handlers say is not told

    return StreamFormat(data, has_partials=False)


CURRENT = StreamFormat(lambda item: item.data)
ENVELOPES = _older(legacy_envelope)
JOBS = _older(legacy_job)
