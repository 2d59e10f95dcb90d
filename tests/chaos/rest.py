"""The way to rest of a chaos run: the load ends, then the envelopes, then the messages."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya.capabilities.clock.steps import NAMED
from asya.protocol import names
from tests.chaos.evidence import message_counts, read_records
from tests.chaos.statuses import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from tests.chaos.observer import Observer
    from tests.chaos.schedule import Size
    from tests.cloud.heavy_cloud import HeavyCloud

_POLL_SECONDS = 3.0
_SAY_SECONDS = 15.0
_SWEEP_SECONDS = 30.0
"""After the load the sweeps run this often, in place of their schedules of up to five minutes."""
_POLLS_AT_REST = 3
"""Everything must be at rest this often in a row."""


@dataclass(frozen=True)
class Rest:
    """Finds out whether anything still moves.

    Attributes:
        cloud: The cloud.
        call_counts: Reads what the fault proxy has counted.
    """

    cloud: HeavyCloud
    call_counts: Callable[[], Mapping[str, int]]

    def wait(
        self, size: Size, observer: Observer, running: Sequence[Future[None]], say: Callable[[str], None]
    ) -> float:
        """Wait until nothing moves any more, the time is over, or a thread of the run has failed.

        Returns the seconds since the beginning of the load.
        """
        log = observer.log
        polls, last_line, last_sweep = 0, -_SAY_SECONDS, size.load_seconds
        while log.now < size.load_seconds + size.drain_seconds and polls < _POLLS_AT_REST:
            if any(each.done() and each.exception() for each in running):
                break
            time.sleep(_POLL_SECONDS)
            open_count = size.envelopes - len(observer.workload.ids) + len(observer.open_ids())
            if log.now - last_line > _SAY_SECONDS:
                last_line = log.now
                say(f"{log.now:4.0f} s: {open_count} of {size.envelopes} envelopes have not ended")
            is_over = log.now > size.load_seconds and not open_count
            polls = polls + 1 if is_over and self.reached() else 0
            if log.now - last_sweep > _SWEEP_SECONDS:
                last_sweep = log.now
                self._sweep()
        return log.now

    def reached(self) -> bool:
        """Whether the working queues are empty, no late duplicate is on its way, and all tasks have ended."""
        queues, _ = message_counts(self.cloud)
        if any(not queue.endswith("-dlq") for queue in queues) or self.call_counts().get("duplicates on their way"):
            return False
        return all(record.status in TERMINAL for record in read_records(self.cloud).values())

    def _sweep(self) -> None:
        steps = json.dumps({NAMED: names.STEPS}).encode()
        for name, payload in ((names.RECONCILE, b"{}"), (names.CLOCK, steps)):
            function = names.function_name(self.cloud.namespace, name)
            self.cloud.client("lambda").invoke(FunctionName=function, InvocationType="Event", Payload=payload)


def ended_tasks(cloud: HeavyCloud) -> set[str]:
    """The ids of the tasks that have ended."""
    return {task_id for task_id, record in read_records(cloud).items() if record.status in TERMINAL}
