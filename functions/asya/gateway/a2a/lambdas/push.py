"""Delivers push notifications to the clients that asked for them (`protocol §13`, `/a2a`).

Fed by a queue of its own: what is not taken comes again, later each time, and in the end lies in the dead-letter queue. A
notification may come twice, and an older one after a newer one: each says how the task stood, and since when.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from asya.gateway.a2a.aws.push_configs import PushConfigStore
from asya.gateway.a2a.aws.push_sender import PushSender
from asya.gateway.a2a.push import PushNotification
from asya.gateway.a2a.tasks import task_of
from asya.gateway.a2a.versions import V10, version_named
from asya.messaging.aws.receipt import Receipt
from asya.messaging.lambdas.batch import Answer, BatchProcessor, Record, records
from asya.sidecar.lambdas.services import Services

_decoder = msgspec.json.Decoder(PushNotification)


@dataclass(frozen=True, slots=True)
class PushDelivery:
    """Sends notifications to where they are wanted."""

    services: Services
    worker: BatchProcessor
    configs: PushConfigStore
    sender: PushSender

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Send each; those that nobody took are kept."""
        return self.worker.process(records(event), self._deliver)

    def _deliver(self, record: Record) -> list[Receipt]:
        push = _decoder.decode(record.arrival.body)
        target = self.configs.read(push.task.id, push.config_id)
        if target is None:
            self.services.telemetry.log.info("no longer wanted", task=push.task.id, config=push.config_id)
            return []
        version = version_named(target.version) or V10
        task = task_of(push.task, version, with_progress=False)
        self.sender.send(target, msgspec.json.encode(version.sent(task)))
        return []
