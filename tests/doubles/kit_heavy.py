"""The heavy mesh on the test kit, in the place of the deployed one."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

from asya.protocol import names
from tests.cloud.heavy_cloud import LONG_AGO, HeavyCloud
from tests.doubles.kit_cloud import KitCloud, kit_cloud

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from asya.testing.services.queues import Message


@dataclass(frozen=True)
class KitHeavy(HeavyCloud):
    """What tests use of `HeavyCloud`, on the kit.

    Attributes:
        received: the messages that the functions received, by queue.
    """

    cloud: KitCloud
    received: Counter[str]

    def runs(self, actor: str = "", *, after: datetime = LONG_AGO) -> list[dict[str, Any]]:
        service = self.cloud.kit.cloud.jobs.service
        prefix = f"asya.{self.namespace}.{actor}." if actor else f"asya.{self.namespace}."
        runs = [run for run in reversed(service.listed(after)) if run.name.startswith(prefix)]
        return [{"id": run.job_run_id, "name": run.name, "state": run.state} for run in runs]

    def received_count(self, actor: str) -> int:
        return self.received[names.queue_name(self.namespace, actor)]

    def retained(self) -> list[str]:
        return [line for line in self.cloud.kit.log if "message kept on the queue" in line]


@contextmanager
def kit_heavy(mesh_file: Path, **options: Any) -> Iterator[KitHeavy]:
    """A mesh with heavy actors on the test kit; see `kit_cloud`."""
    received: Counter[str] = Counter()
    with kit_cloud(mesh_file, **options) as cloud:
        queues = cloud.kit.cloud.queues
        receive = queues.receive

        def counted(name: str, limit: int, hide: float | None = None) -> list[Message]:
            messages = receive(name, limit, hide)
            received[name] += len(messages)
            return messages

        with mock.patch.object(queues, "receive", counted):
            yield KitHeavy(cloud, received)
