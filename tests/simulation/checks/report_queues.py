"""The report queues of the simulated mesh, and the checks of what they hold."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from asya.protocol import names
from asya.testing.dynamo.values import Item
from asya.testing.services.process import Simulation
from asya.testing.services.queues import Message

REPORT_QUEUES = (names.REPORTS, names.ENDS)
MAX_RECEIVES = 1000
TERMINAL = ("succeeded", "failed", "canceled")
# The age of an end beyond which the deadline sweep may not write, with the time that a sweep may take.
LATE_SECONDS = 60.0 + 45.0


@dataclass
class ReportRegistry:
    """The reports that the queues accepted, and the ends that are not consumed yet.

    Attributes:
        tasks: the items of the tasks table.
        registered: ids of the tasks whose registration was accepted.
        ends: task id → the generations whose end was accepted.
    """

    simulation: Simulation
    tasks: Mapping[tuple[str, str], Item]
    registered: set[str] = field(default_factory=set)
    ends: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    _waiting: dict[str, float] = field(default_factory=dict)

    def accepted(self, message: Message, queue: str) -> None:
        """A report queue accepted a message."""
        if queue == names.ENDS:
            self._waiting.setdefault(message.message_id, message.sent_at)
        for report in json.loads(message.body):
            if not isinstance(report, dict):
                continue  # planted beside the others
            if report.get("status") == "registered":
                self.registered.add(report["id"])
            if report.get("status") in TERMINAL:
                self.ends[report["id"]].add(report.get("generation", 0))
            if queue == names.REPORTS and report.get("status") in (*TERMINAL, "paused"):
                raise AssertionError(f"a report of {report['status']} was sent to {queue}: {message.body[:200]}")

    def deleted(self, message: Message) -> Iterator[str]:
        """A message was consumed; a duplicate may remain and does not count. Yield the reports that left no record."""
        self._waiting.pop(message.message_id, None)
        for report in json.loads(message.body):
            # Progress alone makes a record too, of a task that is not registered yet; these two hold for ever.
            if not isinstance(report, dict) or report.get("status") not in ("registered", *TERMINAL):
                continue
            if (report["id"], "record") not in self.tasks:
                yield f"the report that {report['id']} is {report['status']} was acknowledged, and there is no record"

    def is_late(self) -> bool:
        """Whether an end has waited for too long for the deadline sweep to write."""
        oldest = min(self._waiting.values(), default=None)
        return oldest is not None and self.simulation.scheduler.seconds - oldest > LATE_SECONDS


def with_unreadable_report(body: str) -> str:
    """A message whose first report cannot be read; its neighbors count all the same."""
    return f"[5,{body[1:]}"
