"""Delivers push notifications to clients (`protocol §13`, `/a2a`).

A queue of its own feeds this function: a failed delivery is retried with backoff, and ends in the dead-letter queue. A
notification may arrive twice or out of order; each contains the status of the task and its time. One beyond the share of its
host or its owner waits on the queue.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec

from asya.capabilities.a2a.aws.push_configs import PushConfigStore
from asya.capabilities.a2a.aws.push_sender import PushSender
from asya.capabilities.a2a.aws.push_share_items import PushShares
from asya.capabilities.a2a.push import PushNotification
from asya.capabilities.a2a.tasks import task_of
from asya.capabilities.a2a.versions import wrapped
from asya.function.aws.receipt import Receipt
from asya.function.lambdas.batch import BatchProcessor, BatchResponse, Record, records
from asya.sidecar.lambdas.services import Services

_decoder = msgspec.json.Decoder(PushNotification)


@dataclass(frozen=True, slots=True)
class PushDelivery:
    """Delivers notifications from the push queue."""

    services: Services
    worker: BatchProcessor
    configs: PushConfigStore
    sender: PushSender
    shares: PushShares

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Deliver each notification and report the failed ones, which stay on the queue."""
        return self.worker.process(records(event), self._deliver)

    def _deliver(self, record: Record) -> list[Receipt]:
        log = self.services.telemetry.log
        try:
            push = _decoder.decode(record.arrival.body)
        except (msgspec.MsgspecError, RecursionError) as error:
            log.warning("malformed notification dropped", problem=str(error), message_id=record.message_id)
            return []
        if not self.services.admission.has_role(record.arrival):
            # Its receiver would take it for the truth about the task.
            sender = record.arrival.sender
            log.warning("notification of a sender outside dropped", sender=sender, message_id=record.message_id)
            return []
        target = self.configs.read(push.task.id, push.config_id)
        if target is None:
            log.info("skipped a deleted push configuration", task=push.task.id, config=push.config_id)
            return []
        body = msgspec.json.encode(wrapped(task_of(push.task, with_progress=False)))
        with self.shares.hold(urlsplit(target.url).hostname or "", push.task.owner, self.services.now()):
            self.sender.send(target, body)
        return []
