"""Watches the tasks of a chaos run from outside: their records, their views at the gateway, and their streams."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from asya.client.errors import MeshError
from tests.chaos.processes import MemorySample, sample_memory
from tests.chaos.statuses import TERMINAL, Sighting
from tests.cloud.stream_clients import StreamClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chaos.event_log import EventLog
    from tests.chaos.workload import Workload
    from tests.cloud.callers import ApiCaller
    from tests.cloud.heavy_cloud import HeavyCloud

_RECORD_SECONDS = 5.0
_VIEW_SECONDS = 1.0
_STREAM_SECONDS = 2.0
_MEMORY_SECONDS = 5.0
_KEYS = 100
_VIEWED = 20
_STREAMED = 4
_EVERY_TERMINAL = 6
"""How many readings of open tasks come for each reading of all tasks."""


@dataclass
class Observer:
    """Reads at intervals.

    Attributes:
        records: What the tasks table said about each task, by id; only changes are kept.
        views: What the gateway said about a sample, by id.
        streams: The clients that follow a sample.
        memory: The memory of all processes.
    """

    cloud: HeavyCloud
    workload: Workload
    caller: ApiCaller
    proxy_pid: int
    log: EventLog
    records: dict[str, list[Sighting]] = field(default_factory=dict)
    views: dict[str, list[Sighting]] = field(default_factory=dict)
    streams: dict[str, StreamClient] = field(default_factory=dict)
    ended_streams: set[str] = field(default_factory=set)
    memory: list[MemorySample] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def tasks(self) -> list[Callable[[], None]]:
        """The loops of the observer, one for each thread; `stop` ends them."""
        return [self._read_records, self._read_views, self._read_memory, self._follow_streams]

    def stop(self) -> None:
        """End all threads."""
        self._stopped.set()

    def open_ids(self) -> list[str]:
        """The ids of the started tasks whose last reading was not terminal."""
        ids = list(self.workload.ids.values())
        return [each for each in ids if not (seen := self.records.get(each)) or seen[-1].status not in TERMINAL]

    def _read_records(self) -> None:
        for reading in itertools.count():
            if self._stopped.wait(_RECORD_SECONDS):
                return
            ids = self.open_ids() if reading % _EVERY_TERMINAL else list(self.workload.ids.values())
            try:
                for start in range(0, len(ids), _KEYS):
                    self._read_record_batch(ids[start : start + _KEYS])
            except (ClientError, BotoCoreError) as error:
                self.log.add("observer", f"the tasks table did not answer: {error}")

    def _read_record_batch(self, ids: list[str]) -> None:
        table = f"asya-{self.cloud.namespace}-tasks"
        keys = [{"pk": {"S": each}, "sk": {"S": "record"}} for each in ids]
        request = {"Keys": keys, "ConsistentRead": True}
        answer: Any = self.cloud.client("dynamodb").batch_get_item(RequestItems={table: request})
        for item in answer["Responses"].get(table, []):
            generation = int(item.get("generation", {"N": "0"})["N"])
            reason = item.get("reason", {}).get("S", "")
            sighting = Sighting(self.log.now, item["status"]["S"], generation, 0, reason, "provisional" in item)
            _note(self.records.setdefault(item["pk"]["S"], []), sighting)

    def _read_views(self) -> None:
        for turn in itertools.count():
            if self._stopped.wait(_VIEW_SECONDS):
                return
            sample = self._sample(_VIEWED)
            if not sample:
                continue
            task_id = sample[turn % len(sample)]
            try:
                task = self.workload.mesh.task(task_id)
            except MeshError:
                continue  # the gateway is stopped, or a fault reached its function
            if task is not None:
                shown = (str(task.status), task.generation, task.progress_percent, task.reason or "", task.provisional)
                sighting = Sighting(self.log.now, *shown)
                _note(self.views.setdefault(task_id, []), sighting)

    def _follow_streams(self) -> None:
        while not self._stopped.wait(_STREAM_SECONDS):
            for task_id in self._sample(_STREAMED):
                client = self.streams.setdefault(task_id, StreamClient(self.caller, task_id))
                if task_id in self.ended_streams:
                    continue
                try:
                    if not client.connect():
                        self.ended_streams.add(task_id)
                except (HTTPError, AssertionError):
                    continue  # the gateway is stopped, or a fault reached its function

    def _read_memory(self) -> None:
        while not self._stopped.wait(_MEMORY_SECONDS):
            self.memory += sample_memory(self.cloud.folder, self.proxy_pid, self.log.now)

    def _sample(self, count: int) -> list[str]:
        """A fixed sample of the started tasks, spread over the load."""
        ids = list(self.workload.ids.values())
        return ids[:: max(1, len(ids) // count)][:count] if len(ids) >= count else ids


def _note(sightings: list[Sighting], sighting: Sighting) -> None:
    """Keep a sighting if it differs from the last one."""
    if not sightings or not sightings[-1].same(sighting):
        sightings.append(sighting)
