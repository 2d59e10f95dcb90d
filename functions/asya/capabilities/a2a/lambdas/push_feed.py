"""Turns changes of watched tasks into push notifications (`protocol §13`, `/a2a`).

The stream of the tasks table delivers each change at least once and in order, so the writers of records need no code
for notifications. The filter of the event source passes only watched tasks, so other tasks cause no cost. A change
becomes one message per configuration; a failed batch is sent again as a whole.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from asya.capabilities.a2a.aws.push_configs import PushConfigStore
from asya.capabilities.a2a.push import PushNotification, is_status_change
from asya.function.aws.table_items import Item
from asya.protocol.hops import fold
from asya.protocol.strict_json import escape
from asya.protocol.task import TaskRecord
from asya.protocol.times import parse_time
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.items import RECORD, WATCHED, record_of
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.view import task_view

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


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
