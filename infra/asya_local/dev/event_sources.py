"""Polls queues and the stream of the tasks table for the functions, as Lambda's event source mappings do."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.a2a.lambdas.push import is_watched
from asya_local.account import ACCOUNT_ID, REGION
from asya_local.dev.handlers import NotLoadedError, WorkerDiedError, WorkerFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_BATCH = 10
_WAIT = 20
_AGAIN = 1.0
"""Seconds until the next poll after a failed one."""


@dataclass(eq=False)
class EventSource:
    """One queue and its function.

    Attributes:
        sqs: A client, whose timeout is longer than a poll.
        name: The name of the actor or system function.
        queue: The name of the queue.
        url: The URL of the queue.
        batch_size: Messages per call.
        process: Processes an event; returns the ids of the messages that stay on the queue.
        ready: Returns when the function can be called.
        tell: Takes the level and the text of what the author should know.
    """

    sqs: Any
    name: str
    queue: str
    url: str
    batch_size: int
    process: Callable[[Mapping[str, Any]], set[str]]
    tell: Callable[[str, str], None]
    ready: Callable[[], None] = lambda: None
    _ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Poll in a thread of its own."""
        threading.Thread(target=self._poll, name=self.queue, daemon=True).start()

    def end(self) -> None:
        """Call the function no more; a batch that runs ends first."""
        self._ended.set()

    def _poll(self) -> None:
        while not self._ended.is_set():
            self.ready()
            try:
                self.poll()
            except (ClientError, BotoCoreError) as error:
                if not self._ended.wait(_AGAIN):
                    self.tell("error", f"{self.name}: its queue does not answer: {error}")

    def poll(self) -> None:
        """Receive one batch, and call the function with it. After the end its messages come again.

        Raises:
            botocore.exceptions.ClientError: The queue does not answer.
        """
        messages = self._receive()
        if messages and self._ended.is_set():
            self._release(messages)
        elif messages:
            self._handle(messages)

    def _receive(self) -> Sequence[Mapping[str, Any]]:
        answer = self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=min(self.batch_size, _BATCH),
            WaitTimeSeconds=_WAIT,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        messages: Sequence[Mapping[str, Any]] = answer.get("Messages", ())
        return messages

    def _handle(self, messages: Sequence[Mapping[str, Any]]) -> None:
        try:
            failed = self.process({"Records": [self._record(message) for message in messages]})
        except NotLoadedError:  # it changed while the queue was polled
            self._release(messages)
            return
        except WorkerDiedError:
            self.tell("error", f"{self.name}: its process ended in the middle of a batch, which comes again")
            self._release(messages)
            return
        except Exception as error:  # noqa: BLE001 - as on AWS, the batch of a function that raises stays on the queue
            problem = str(error) if isinstance(error, WorkerFailedError) else f"{type(error).__name__}: {error}"
            self.tell("error", f"{self.name}: its function failed: {problem}")
            return
        handled = [message for message in messages if message["MessageId"] not in failed]
        if handled:
            entries = [
                {"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]} for number, each in enumerate(handled)
            ]
            self.sqs.delete_message_batch(QueueUrl=self.url, Entries=entries)

    def _release(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Let messages come again at once."""
        with suppress(ClientError, BotoCoreError):  # else they come when their visibility timeout ends
            self.sqs.change_message_visibility_batch(
                QueueUrl=self.url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": each["ReceiptHandle"], "VisibilityTimeout": 0}
                    for number, each in enumerate(messages)
                ],
            )

    def _record(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a message in the form of Lambda's events."""
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": dict(message["Attributes"]),
            "messageAttributes": {
                name: {
                    "stringValue": value.get("StringValue"),
                    "dataType": value["DataType"],
                    "stringListValues": [],
                    "binaryListValues": [],
                }
                for name, value in message.get("MessageAttributes", {}).items()
            },
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{self.queue}",
            "awsRegion": REGION,
        }


_PAUSE = 0.5
"""Seconds between two polls."""
_STREAM_AGAIN = 10.0
"""Seconds until the next poll after a failed one."""


@dataclass(eq=False)
class TableChanges:
    """The changes of one table.

    Attributes:
        streams: A client of DynamoDB Streams.
        table: The name of the table.
        process: Processes an event.
        tell: Takes the level and the text of what the author should know.
    """

    streams: Any
    table: str
    process: Callable[[Mapping[str, Any]], None]
    tell: Callable[[str, str], None]
    _ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Poll in a thread of its own."""
        threading.Thread(target=self._poll, name="changes", daemon=True).start()

    def end(self) -> None:
        """Poll no more."""
        self._ended.set()

    def _poll(self) -> None:
        iterator: str | None = None
        while not self._ended.wait(_PAUSE):
            try:
                iterator = self.pass_on(iterator or self._first())
            except (ClientError, BotoCoreError, IndexError, KeyError) as error:
                iterator = None  # it may have expired; a change that comes again is one notification more
                if not self._ended.wait(_STREAM_AGAIN):
                    self.tell("error", f"push notifications: the stream of tasks does not answer: {error}")

    def _first(self) -> str:
        """Return the iterator of the first change."""
        stream = self.streams.list_streams(TableName=self.table)["Streams"][0]["StreamArn"]
        shard = self.streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"][0]["ShardId"]
        answer = self.streams.get_shard_iterator(StreamArn=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
        return str(answer["ShardIterator"])

    def pass_on(self, iterator: str) -> str:
        """Pass on the changes behind an iterator, and return the next one; a batch that fails comes again."""
        answer = self.streams.get_records(ShardIterator=iterator)
        watched = [record for record in answer["Records"] if is_watched(record)]
        if watched:
            try:
                self.process({"Records": watched})
            except Exception as error:  # noqa: BLE001 - as on AWS, the batch of a function that raises comes again
                self.tell("error", f"push notifications: {type(error).__name__}: {error}")
                return iterator
        return str(answer["NextShardIterator"])
