"""The functions that make push notifications of changes and deliver them (`protocol §13`, `/a2a`).

A queue of its own feeds the function that delivers: a failed delivery is retried with backoff, and ends in the
dead-letter queue. A notification may arrive twice or out of order; each contains the status of the task and its time.
One beyond the share of its host or its owner waits on the queue.

The stream of the tasks table delivers each change at least once and in order, so the writers of records need no code
for notifications. The filter of the event source passes only watched tasks, so other tasks cause no cost. A change
becomes one message per configuration; a failed batch is sent again as a whole.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from asya.capabilities.a2a.aws.push_items import PushConfigStore, PushShares
from asya.capabilities.a2a.aws.push_sender import SECONDS, PushSender
from asya.capabilities.a2a.push import PushNotification, is_status_change
from asya.capabilities.a2a.tasks import task_of
from asya.capabilities.a2a.versions import wrapped
from asya.function.aws import clients
from asya.function.aws.receipt import Receipt
from asya.function.aws.table import Table
from asya.function.aws.table_items import Item
from asya.function.lambdas.batch import BatchProcessor, BatchResponse, Record, records
from asya.gateway.statements import NOTIFICATION
from asya.protocol import names
from asya.protocol.hops import fold
from asya.protocol.strict_json import escape
from asya.protocol.task import TaskRecord
from asya.protocol.times import parse_time
from asya.sidecar.lambdas.entry_point import ChangesEntryPoint, queue_entry_point
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.items import RECORD, WATCHED, record_of
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.view import task_view

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

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
        refused = self.services.admission.problem(record.arrival, NOTIFICATION)
        if refused is not None:
            # Its receiver would take it for the truth about the task.
            sender = record.arrival.sender
            log.warning("notification dropped", problem=refused, sender=sender, message_id=record.message_id)
            return []
        target = self.configs.read(push.task.id, push.config_id)
        if target is None:
            log.info("skipped a deleted push configuration", task=push.task.id, config=push.config_id)
            return []
        body = msgspec.json.encode(wrapped(task_of(push.task, with_progress=False)))
        with self.shares.hold(urlsplit(target.url).hostname or "", push.task.owner, self.services.now()):
            self.sender.send(target, body)
        return []


@dataclass(frozen=True, slots=True)
class PushFeed:
    """Sends notifications to the push queue."""

    services: Services
    configs: PushConfigStore
    sqs: "SQSClient"
    queue_url: str

    def process(self, event: Mapping[str, Any]) -> None:
        """Send a notification for each change of status.

        Raises:
            TaskStoreError, ClientError, BotoCoreError: If a message could not be sent; the batch is delivered again.
        """
        for record in self._changed_records(event):
            # The task at the time of the change, without hops: the record does not hold them.
            task = task_view(record, fold((), record.generation), parse_time(record.updated_at))
            for config_id in self.configs.all(record.id):
                # SQS refuses characters that XML does not allow; escapes replace them.
                body = escape(msgspec.json.encode(PushNotification(config_id=config_id, task=task)))
                self.sqs.send_message(QueueUrl=self.queue_url, MessageBody=body.decode("ascii"))

    def _changed_records(self, event: Mapping[str, Any]) -> Iterator[TaskRecord]:
        for change in event["Records"]:
            images = change["dynamodb"]
            before, after = Item(images.get("OldImage")), Item(images.get("NewImage"))
            if not after or after.key.sk != RECORD:
                continue
            try:
                record = record_of(after)
                has_changed = is_status_change(record_of(before) if before else None, record)
            except (TaskStoreError, KeyError, ValueError, msgspec.MsgspecError):
                # A retry would fail again and block the other records.
                self.services.telemetry.log.exception("skipped an unreadable task record", task=after.key.pk)
                continue
            if has_changed:
                yield record


def is_watched(change: Mapping[str, Any]) -> bool:
    """Return whether a change is of a record that an agent watches, as the filter of the event source does."""
    images: Mapping[str, Any] = change["dynamodb"]
    return Item(images["Keys"]).key.sk == RECORD and Item(images.get("NewImage")).flag(WATCHED, False)


def build_push(services: Services) -> PushDelivery:
    """Build the function that delivers push notifications."""
    settings = services.settings
    worker = BatchProcessor(clients.sqs(), settings.queue_url(settings.actor), (), services.telemetry)
    return PushDelivery(
        services,
        worker,
        _configs(services),
        PushSender(settings.table.gateway.notification_hosts),
        PushShares(
            Table(clients.dynamodb(), settings.table_name("tasks")),
            services.environment,
            limit=SECONDS,
            warn=services.telemetry.log.warning,
        ),
    )


def build_push_feed(services: Services) -> PushFeed:
    """Build the function that turns changes of tasks into push notifications."""
    return PushFeed(services, _configs(services), clients.sqs(), services.settings.queue_url(names.PUSH))


def _configs(services: Services) -> PushConfigStore:
    settings = services.settings
    return PushConfigStore(clients.dynamodb(), settings.table_name("tasks"), settings.table.retention.tasks)


push = queue_entry_point(build_push)
push_feed = ChangesEntryPoint(build_push_feed)
