"""SQS in memory, with the limits of SQS and faults on demand."""

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from botocore.exceptions import ClientError

from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GROUP = re.compile(r"[!-~]{1,128}")
_LIMIT = 1024 * 1024
REPORT_QUEUES = ("-x-reports", "-x-ends")


@dataclass(frozen=True)
class Sent:
    """An accepted message."""

    body: str
    delay: int = 0
    group: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def envelope(self) -> Envelope:
        """The envelope of the message."""
        return decode(self.body.encode())


@dataclass(frozen=True)
class Refusal:
    """A fault: an entry in `Failed`, an error of the whole call, or an entry missing in the response."""

    kind: Literal["entry", "call", "silence"] = "entry"
    code: str = "InternalError"
    sender_fault: bool = False


@dataclass
class FakeSqs:
    """An SQS client with the calls that the mesh makes.

    Attributes:
        sent: queue name → accepted messages in order.
        requests: queue name and size of each valid batch.
        calls: queue name of each send call, also of failed ones.
        deleted: the receipt handles of deleted messages.
        visibility: receipt handle → visibility timeout in seconds.
        refuse: queue name → the faults of the next messages, one each.
        refuse_always: queue name → the fault of all further messages.
        broken: the operations that fail with ServiceUnavailable.
        changed: notified after each batch.
        take_reports: takes the body of each message to a report queue, by queue name; False if SQS does not accept it.
    """

    sent: dict[str, list[Sent]] = field(default_factory=lambda: defaultdict(list))
    requests: list[tuple[str, int]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    visibility: dict[str, int] = field(default_factory=dict)
    refuse: dict[str, list[Refusal]] = field(default_factory=dict)
    refuse_always: dict[str, Refusal] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)
    take_reports: Callable[[str, str], bool] | None = None

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """Accept a batch or a part of it."""
        queue = QueueUrl.rpartition("/")[2]
        self.calls.append(queue)
        self._check("send_message_batch")
        if not 1 <= len(Entries) <= 10:
            raise _error("TooManyEntriesInBatchRequest", "SendMessageBatch")
        if len({entry["Id"] for entry in Entries}) < len(Entries):
            raise _error("BatchEntryIdsNotDistinct", "SendMessageBatch")
        if sum(len(entry["MessageBody"].encode()) for entry in Entries) > _LIMIT:
            raise _error("BatchRequestTooLong", "SendMessageBatch")
        with self.changed:
            self.requests.append((queue, len(Entries)))
            answer: dict[str, list[dict[str, Any]]] = {"Successful": [], "Failed": []}
            for entry in Entries:
                refusal = self._refusal(queue, entry)
                is_report = queue.endswith(REPORT_QUEUES)
                if refusal is None and is_report and self.take_reports is not None:
                    refusal = None if self.take_reports(queue, entry["MessageBody"]) else Refusal(sender_fault=True)
                if refusal is None and is_report and self.take_reports is not None:
                    answer["Successful"].append({"Id": entry["Id"], "MessageId": "m"})
                elif refusal is None:
                    delay, group = entry.get("DelaySeconds", 0), entry.get("MessageGroupId")
                    attributes = entry.get("MessageAttributes", {})
                    self.sent[queue].append(Sent(entry["MessageBody"], delay, group, attributes))
                    answer["Successful"].append({"Id": entry["Id"], "MessageId": "m"})
                elif refusal.kind == "call":
                    raise _error(refusal.code, "SendMessageBatch")
                elif refusal.kind == "entry":
                    answer["Failed"].append(
                        {"Id": entry["Id"], "Code": refusal.code, "SenderFault": refusal.sender_fault, "Message": "no"}
                    )
            self.changed.notify_all()
        return {name: entries for name, entries in answer.items() if entries}

    def send_message(self, *, QueueUrl: str, MessageBody: str, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Accept one message or refuse it."""
        entry = {"Id": "0", "MessageBody": MessageBody, **more}
        answer = self.send_message_batch(QueueUrl=QueueUrl, Entries=[entry])
        if not answer.get("Successful"):
            raise _error("InternalError", "SendMessage")
        return {"MessageId": "m"}

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> dict[str, Any]:  # noqa: N803
        """Delete one message."""
        self._check("delete_message")
        self.deleted.append(ReceiptHandle)
        return {}

    def change_message_visibility_batch(
        self,
        *,
        QueueUrl: str,  # noqa: N803
        Entries: Sequence[Mapping[str, Any]],  # noqa: N803
    ) -> dict[str, Any]:
        """Set the visibility timeout of messages."""
        self._check("change_message_visibility_batch")
        for entry in Entries:
            self.visibility[entry["ReceiptHandle"]] = entry["VisibilityTimeout"]
        return {}

    def wait_until_sent(self, queue: str, count: int = 1, seconds: float = 60.0) -> bool:
        """Wait until a queue has accepted this many messages; return False at the timeout."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.sent[queue]) >= count, timeout=seconds)

    def _refusal(self, queue: str, entry: Mapping[str, Any]) -> Refusal | None:
        if _NO_XML.search(entry["MessageBody"]):
            return Refusal(code="InvalidMessageContents", sender_fault=True)
        group = entry.get("MessageGroupId")
        if not 0 <= entry.get("DelaySeconds", 0) <= 900 or (group is not None and not _GROUP.fullmatch(group)):
            return Refusal(code="InvalidParameterValue", sender_fault=True)
        refusals = self.refuse.get(queue)
        return refusals.pop(0) if refusals else self.refuse_always.get(queue)

    def _check(self, call: str) -> None:
        if call in self.broken:
            raise _error("ServiceUnavailable", call)


def _error(code: str, call: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "on demand"}}, call)
