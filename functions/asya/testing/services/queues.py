"""SQS: it delays, reorders and redelivers messages, delivers some twice, and moves some to a dead-letter queue."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, Protocol

from botocore.exceptions import ClientError, ReadTimeoutError

from asya.function.sqs import MESSAGE_BYTES
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope
from asya.testing.services.process import Process, Simulation

BATCH_ENTRIES = 10
MAX_DELAY = 900
_DLQ = "-dlq"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GROUP = re.compile(r"[!-~]{1,128}")


@dataclass
class Message:
    """A message on a queue; a duplicate has the same id.

    Attributes:
        visible_at: virtual seconds from which the message is visible.
        receipt: the receipt handle of the last receive.
        delay: seconds from its send until it became visible.
    """

    message_id: str
    queue: str
    body: str
    sent_at: float
    visible_at: float
    sender: str
    group: str | None = None
    receives: int = 0
    receipt: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    delay: float = 0

    @property
    def envelope(self) -> Envelope:
        """The envelope of the message."""
        return decode(self.body.encode())


@dataclass(frozen=True)
class Refusal:
    """A planned fault of one message.

    Attributes:
        kind: an entry in `Failed`, an error of the whole call, or an entry that is missing in the answer.
    """

    kind: Literal["entry", "call", "silence"] = "entry"
    code: str = "InternalError"
    sender_fault: bool = False


@dataclass
class Queue:
    """A queue with a dead-letter queue.

    Attributes:
        visibility: the visibility timeout in seconds.
        max_receives: receives before a message moves to the dead-letter queue; None for a dead-letter queue itself.
    """

    name: str
    visibility: float
    max_receives: int | None
    messages: list[Message] = field(default_factory=list)


class QueueObserver(Protocol):
    """Observes messages."""

    def accepted(self, message: Message, sender: Process | None) -> None:
        """A queue accepted a message."""

    def deleted(self, message: Message, by: Process | None) -> None:
        """A message was deleted."""

    def dead_lettered(self, message: Message) -> None:
        """A message moved to a dead-letter queue."""

    def given_up(self, message: Message, sender: Process | None) -> None:
        """A function has put a message of its own queue into the dead-letter queue."""

    def moved(self, message: Message) -> None:
        """A message left its dead-letter queue for the queue that it came from."""


@dataclass
class Queues:
    """All queues of a mesh.

    Attributes:
        wake: called with the name of a queue when a message becomes visible.
        change_report: changes the body of a message to a report queue.
        refusal: the planned fault of a message that SQS would take, by its queue and its body; None to take it.
        message_limit: the most bytes of a message. Reports have no claim check, so their queues have the limit of SQS.
    """

    simulation: Simulation
    observer: QueueObserver
    wake: Callable[[str], None]
    queues: dict[str, Queue] = field(default_factory=dict)
    change_report: Callable[[str], str] = lambda body: body
    refusal: Callable[[str, str], Refusal | None] = lambda _queue, _body: None
    message_limit: int = MESSAGE_BYTES
    _numbers: "count[int]" = field(default_factory=count)

    def send(
        self,
        name: str,
        body: str,
        *,
        sender: Process | None,
        by: str,
        delay: float = 0,
        group: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> str:
        """Accept a message and return its id."""
        number, seconds = next(self._numbers), self.simulation.scheduler.seconds
        if self.simulation.faults.profile.report_outage and name.endswith(("-x-reports", "-x-ends")):
            body = self.change_report(body)
        message = Message(f"{number:08x}-0000-4000-8000-000000000000", name, body, seconds, seconds + delay, by, group)
        message.attributes, message.delay = dict(attributes or {}), delay
        if (source := name.removesuffix(_DLQ)) in self.queues and source != name:
            self.queues[name].messages.append(message)
            message.queue = source
            self.observer.given_up(message, sender)
            return message.message_id
        self._offer(message)
        if self.simulation.faults.duplicates(name, seconds):
            later = seconds + delay + self.simulation.random.uniform(0.0, 30.0)
            self._offer(replace(message, visible_at=later))
        self.observer.accepted(message, sender)
        return message.message_id

    def receive(self, name: str, limit: int, hide: float | None = None) -> list[Message]:
        """Receive up to `limit` visible messages in random order; dead letters move to the DLQ instead.

        Args:
            hide: overrides the visibility timeout, in seconds.
        """
        queue, visible = self.queues[name], self.visible(name)
        self.simulation.random.shuffle(visible)
        received: list[Message] = []
        for message in visible[:limit]:
            if queue.max_receives is not None and message.receives >= queue.max_receives:
                queue.messages.remove(message)
                self.queues[f"{name}{_DLQ}"].messages.append(message)
                self.observer.dead_lettered(message)
                continue
            message.receives += 1
            message.receipt = f"receipt-{next(self._numbers)}"
            self._hide(message, queue.visibility if hide is None else hide)
            received.append(message)
        return received

    def visible(self, name: str) -> list[Message]:
        """Return the visible messages."""
        now = self.simulation.scheduler.seconds
        return [message for message in self.queues[name].messages if message.visible_at <= now]

    def delete(self, name: str, receipt: str, by: Process | None) -> None:
        """Delete a message; an outdated receipt handle has no effect."""
        queue = self.queues[name]
        for message in queue.messages:
            if message.receipt == receipt:
                queue.messages.remove(message)
                self.observer.deleted(message, by)
                return

    def move_back(self, dead_letter_queue: str, by: str | None = None) -> None:
        """Move all dead letters to the queue that they came from; SQS gives each a new message id and no receives.

        Args:
            by: who asks for it, and is their sender from now on; None to keep their senders.
        """
        queue = self.queues[dead_letter_queue]
        moved, queue.messages = queue.messages, []
        for message in moved:
            self.observer.moved(message)
            self.send(message.queue, message.body, sender=None, by=by or message.sender, group=message.group)

    def set_visibility(self, name: str, receipt: str, seconds: float) -> None:
        """Set the visibility timeout of a message; an outdated receipt handle has no effect."""
        for message in self.queues[name].messages:
            if message.receipt == receipt:
                self._hide(message, seconds)

    def problem(self, name: str, body: str, delay: float, group: str | None = None) -> str | None:
        """The code of SQS's error for a message that it refuses; None for one that it takes."""
        if not body or _NO_XML.search(body):
            return "InvalidMessageContents"
        limit = MESSAGE_BYTES if name.endswith(("-x-reports", "-x-ends")) else self.message_limit
        if len(body.encode()) > limit or not 0 <= delay <= MAX_DELAY or delay != int(delay):
            return "InvalidParameterValue"
        return None if group is None or _GROUP.fullmatch(group) else "InvalidParameterValue"

    def _offer(self, message: Message) -> None:
        self.queues[message.queue].messages.append(message)
        self.simulation.scheduler.after(
            message.visible_at - self.simulation.scheduler.seconds, lambda: self.wake(message.queue)
        )

    def _hide(self, message: Message, seconds: float) -> None:
        message.visible_at = self.simulation.scheduler.seconds + seconds
        self.simulation.scheduler.after(seconds, lambda: self.wake(message.queue))


@dataclass
class SqsClient:
    """The SQS client of one process."""

    process: Process
    queues: Queues
    sender_id: str
    meta: ClassVar = SimpleNamespace(endpoint_url="https://sqs.simulated")
    """What a client says of itself: its endpoint is none of AWS."""

    def send_message(
        self,
        *,
        QueueUrl: str,  # noqa: N803
        MessageBody: str,  # noqa: N803
        DelaySeconds: int = 0,  # noqa: N803
        MessageGroupId: str | None = None,  # noqa: N803
        MessageAttributes: Mapping[str, Any] | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        """Send one message."""
        name = _name(QueueUrl)

        def do() -> dict[str, Any]:
            self._known(name)
            problem = self.queues.problem(name, MessageBody, DelaySeconds, MessageGroupId)
            if problem is not None:
                raise _error(problem, 400)
            refusal = self.queues.refusal(name, MessageBody)
            if refusal is not None:
                raise _error(refusal.code if refusal.kind == "call" else "InternalError", 400)
            sent = self.queues.send(
                name,
                MessageBody,
                sender=self.process,
                by=self.sender_id,
                delay=DelaySeconds,
                group=MessageGroupId,
                attributes=MessageAttributes,
            )
            return {"MessageId": sent}

        return self._call(f"SendMessage {name}", do)

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """Send up to ten messages."""
        name = _name(QueueUrl)

        def do(failed: frozenset[int] = frozenset()) -> dict[str, Any]:
            self._known(name)
            self._check_batch(Entries)
            if sum(len(entry["MessageBody"].encode()) for entry in Entries) > MESSAGE_BYTES:
                raise _error("AWS.SimpleQueueService.BatchRequestTooLong", 400)
            answer: dict[str, list[dict[str, Any]]] = {"Successful": [], "Failed": []}
            for number, entry in enumerate(Entries):
                refusal = self._refusal(name, entry) or (Refusal() if number in failed else None)
                if refusal is not None and refusal.kind == "call":
                    raise _error(refusal.code, 400)
                if refusal is not None and refusal.kind == "entry":
                    code = {"Code": refusal.code, "SenderFault": refusal.sender_fault, "Message": "simulated"}
                    answer["Failed"].append({"Id": entry["Id"]} | code)
                elif refusal is None:
                    sent = self.queues.send(
                        name,
                        entry["MessageBody"],
                        sender=self.process,
                        by=self.sender_id,
                        delay=entry.get("DelaySeconds", 0),
                        group=entry.get("MessageGroupId"),
                        attributes=entry.get("MessageAttributes"),
                    )
                    answer["Successful"].append({"Id": entry["Id"], "MessageId": sent})
            return {key: entries for key, entries in answer.items() if entries}

        def in_part() -> dict[str, Any]:
            failed = {number for number in range(len(Entries)) if self.process.random() < 0.6}
            return do(frozenset(failed))

        return self._call(f"SendMessageBatch {name} ({len(Entries)})", do, in_part)

    def receive_message(
        self,
        *,
        QueueUrl: str,  # noqa: N803
        MaxNumberOfMessages: int = 1,  # noqa: N803
        VisibilityTimeout: int | None = None,  # noqa: N803
        WaitTimeSeconds: int = 0,  # noqa: N803
        MessageSystemAttributeNames: Sequence[str] = (),  # noqa: N803
        MessageAttributeNames: Sequence[str] = (),  # noqa: N803
    ) -> dict[str, Any]:
        """Receive up to ten messages with all system attributes, and the attributes of their senders that are named."""
        name = _name(QueueUrl)

        def do() -> dict[str, Any]:
            messages = self.queues.receive(name, min(MaxNumberOfMessages, BATCH_ENTRIES), hide=VisibilityTimeout)
            at = self.process.simulation.scheduler.at
            received = [_received(message, at(message.sent_at), MessageAttributeNames) for message in messages]
            return {"Messages": received} if messages else {}

        return self._call(f"ReceiveMessage {name}", do)

    def get_queue_url(self, *, QueueName: str) -> dict[str, Any]:  # noqa: N803
        """Return the URL of a queue."""

        def do() -> dict[str, Any]:
            self._known(QueueName)
            return {"QueueUrl": f"https://sqs/{QueueName}"}

        return self._call(f"GetQueueUrl {QueueName}", do)

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Sequence[str]) -> dict[str, Any]:  # noqa: N803
        """Count the visible messages, those in flight and those that are delayed, and show the settings of the queue."""
        name = _name(QueueUrl)

        def do() -> dict[str, Any]:
            queue = self.queues.queues[name]
            visible, messages = len(self.queues.visible(name)), queue.messages
            delayed = sum(not message.receives for message in messages) - sum(
                not message.receives for message in self.queues.visible(name)
            )
            values: dict[str, object] = {
                "ApproximateNumberOfMessages": visible,
                "ApproximateNumberOfMessagesNotVisible": len(messages) - visible - delayed,
                "ApproximateNumberOfMessagesDelayed": delayed,
                "VisibilityTimeout": int(queue.visibility),
            }
            if queue.max_receives is not None:
                values["RedrivePolicy"] = json.dumps({"maxReceiveCount": queue.max_receives})
            is_asked = AttributeNames if "All" not in AttributeNames else values
            return {"Attributes": {key: str(value) for key, value in values.items() if key in is_asked}}

        return self._call(f"GetQueueAttributes {name}", do)

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> dict[str, Any]:  # noqa: N803
        """Delete one message."""
        name = _name(QueueUrl)

        def do() -> dict[str, Any]:
            self.queues.delete(name, ReceiptHandle, self.process)
            return {}

        return self._call(f"DeleteMessage {name} {ReceiptHandle}", do)

    def change_message_visibility_batch(
        self,
        *,
        QueueUrl: str,  # noqa: N803
        Entries: Sequence[Mapping[str, Any]],  # noqa: N803
    ) -> dict[str, Any]:
        """Set the visibility timeout of messages."""
        name = _name(QueueUrl)

        def do() -> dict[str, Any]:
            self._check_batch(Entries)
            for entry in Entries:
                self.queues.set_visibility(name, entry["ReceiptHandle"], entry["VisibilityTimeout"])
            return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

        return self._call(f"ChangeMessageVisibilityBatch {name} ({len(Entries)})", do)

    def _call(
        self, what: str, do: Callable[[], dict[str, Any]], in_part: Callable[[], dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        return self.process.call(
            "sqs",
            what,
            do,
            in_part=in_part,
            refusal=lambda: _error("ServiceUnavailable", 503),
            lost_response=lambda: ReadTimeoutError(endpoint_url="https://sqs"),
        )

    def _refusal(self, name: str, entry: Mapping[str, Any]) -> Refusal | None:
        body, group = entry["MessageBody"], entry.get("MessageGroupId")
        problem = self.queues.problem(name, body, entry.get("DelaySeconds", 0), group)
        return Refusal(code=problem, sender_fault=True) if problem is not None else self.queues.refusal(name, body)

    def _known(self, name: str) -> None:
        if name not in self.queues.queues:
            raise _error("AWS.SimpleQueueService.NonExistentQueue", 400)

    def _check_batch(self, entries: Sequence[Mapping[str, Any]]) -> None:
        if not 1 <= len(entries) <= BATCH_ENTRIES:
            raise _error("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400)
        if len({entry["Id"] for entry in entries}) < len(entries):
            raise _error("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400)


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def _received(message: Message, sent_at: datetime, own: Sequence[str]) -> dict[str, Any]:
    sent = int(sent_at.timestamp() * 1000)
    attributes = {
        "SentTimestamp": str(sent),
        "ApproximateReceiveCount": str(message.receives),
        "SenderId": message.sender,
    }
    if message.group is not None:
        attributes["MessageGroupId"] = message.group
    return {
        "MessageId": message.message_id,
        "ReceiptHandle": message.receipt,
        "Body": message.body,
        "Attributes": attributes,
        "MessageAttributes": {name: value for name, value in message.attributes.items() if name in own},
    }


def _error(code: str, status: int) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "simulated"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "SQS")
