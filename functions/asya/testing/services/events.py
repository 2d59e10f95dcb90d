"""EventBridge: passes the events of pauses to a subscriber, some of them twice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from asya.testing.services.process import Process

MAX_DELAY = 10.0


@dataclass
class EventBus:
    """The default bus.

    Attributes:
        subscriber: called with the detail of each event, soon after it was accepted.
    """

    subscriber: Callable[[str], None] = lambda _: None


@dataclass
class EventsClient:
    """The EventBridge client of one process."""

    process: Process
    bus: EventBus

    def put_events(self, *, Entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """Accept up to ten events."""

        def do() -> dict[str, Any]:
            for entry in Entries:
                self._deliver(entry["Detail"])
            return {"FailedEntryCount": 0, "Entries": [{"EventId": "simulated"} for _ in Entries]}

        return self.process.call(
            "events",
            f"PutEvents ({len(Entries)})",
            do,
            in_part=self._reject(len(Entries)),
            refusal=lambda: _error("ThrottlingException", 400),
            lost_response=lambda: ReadTimeoutError(endpoint_url="https://events"),
        )

    def _deliver(self, detail: str) -> None:
        simulation = self.process.simulation
        delay = simulation.random.uniform(0.0, MAX_DELAY)
        simulation.scheduler.start(lambda: self.bus.subscriber(detail), delay)

    @staticmethod
    def _reject(count: int) -> Callable[[], dict[str, Any]]:
        entry = {"ErrorCode": "InternalFailure", "ErrorMessage": "simulated"}
        return lambda: {"FailedEntryCount": count, "Entries": [entry] * count}


def _error(code: str, status: int) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "simulated"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "EventBridge")
