"""Fed by the changes of the tasks table: makes push notifications of those that somebody wants to hear of (`protocol §13`, `/a2a`).

Whoever writes a record, be it a report, a cancel, a resume or the backstop, need not know of this: what has been written comes here
for sure, in its order, and as often as it takes. The filter of the event source lets only watched tasks through, so that others
cost nothing. A change becomes one message for each address; dying before all are sent means that all are sent again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from asya.gateway.a2a.aws.push_configs import PushConfigStore
from asya.gateway.a2a.push import PushNotification, is_status_change
from asya.protocol.hops import fold
from asya.protocol.strict_json import escape
from asya.protocol.task import TaskRecord
from asya.protocol.times import parse_time
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.items import RECORD, record_of
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.view import task_view

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class PushFeed:
    """Sends notifications on their way."""

    services: Services
    configs: PushConfigStore
    sqs: "SQSClient"
    queue_url: str

    def process(self, event: Mapping[str, Any]) -> None:
        """Tell of every change that is news.

        Raises:
            TaskStoreError, ClientError, BotoCoreError: if some could not be sent; the batch comes again.
        """
        for record in self._news(event):
            # As it stood when it was written. Its hops are not part of the record; whoever wants to know of them asks.
            task = task_view(record, fold((), record.generation), parse_time(record.updated_at))
            for config_id in self.configs.all(record.id):
                # SQS takes no characters that XML has not; escaped, there are none.
                body = escape(msgspec.json.encode(PushNotification(config_id=config_id, task=task)))
                self.sqs.send_message(QueueUrl=self.queue_url, MessageBody=body.decode("ascii"))

    def _news(self, event: Mapping[str, Any]) -> Iterator[TaskRecord]:
        for change in event["Records"]:
            images = change["dynamodb"]
            before, after = images.get("OldImage"), images.get("NewImage")
            if after is None or after["sk"]["S"] != RECORD:
                continue
            try:
                record = record_of(after)
                is_new = is_status_change(record_of(before) if before else None, record)
            except (TaskStoreError, KeyError, ValueError, msgspec.MsgspecError):
                # Coming again would not make it readable.
                self.services.telemetry.log.exception("a task's record is unreadable", task=after["pk"]["S"])
                continue
            if is_new:
                yield record
