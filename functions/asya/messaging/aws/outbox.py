"""Sending: deliveries gathered into batches, on the wire within 50 ms (`protocol §4`, `§5.8`)."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asya.messaging.aws.receipt import Receipt
from asya.messaging.batching import pack
from asya.messaging.delivery import Delivery
from asya.messaging.sqs_limits import BATCH_ENTRIES, DELAY_SECONDS

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

# The rest of the 50 ms is for waking up and for the request itself.
LINGER_SECONDS = 0.04
# Entries that SQS itself could not take (not the sender's fault) are offered again this often.
ENTRY_TRIES = 3


class SendError(RuntimeError):
    """A message that SQS did not take: names the actor whose queue it was for, and why."""


@dataclass(slots=True)
class _Waiting:
    delivery: Delivery
    receipt: Receipt
    since: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self.delivery.body)


class Outbox:
    """Takes deliveries at any time and sends them by queue in full batches.

    A frame waits at most 40 ms for company: a background thread sends what has waited so long, `flush` sends the rest at
    once. `prepare` may replace a delivery before it is packed (the claim check of large payloads). Where threads are not wanted
    (`threaded` is false), whatever is no full batch waits for `flush`.
    """

    def __init__(
        self,
        sqs: "SQSClient",
        queue_url: Callable[[str], str],
        prepare: Callable[[Delivery], Delivery] = lambda delivery: delivery,
        *,
        threaded: bool = True,
    ) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._prepare = prepare
        self._threaded = threaded
        self._waiting: dict[str, list[_Waiting]] = {}
        self._changed = threading.Condition()
        self._sending = 0
        self._thread: threading.Thread | None = None

    def send(self, delivery: Delivery) -> Receipt:
        """Hand over a delivery; returns at once. Its ticket is settled when SQS has answered."""
        receipt = Receipt(delivery.kind)
        try:
            prepared = self._prepare(delivery)
        except Exception as error:  # noqa: BLE001 - whatever kept it from being stored keeps it from being sent: a nack
            receipt.resolve(error)
            return receipt
        with self._changed:
            waiting = self._waiting.setdefault(prepared.actor, [])
            waiting.append(_Waiting(prepared, receipt))
            due = {prepared.actor: self._waiting.pop(prepared.actor)} if len(waiting) >= BATCH_ENTRIES else {}
            self._sending += len(due)
            if not due and self._threaded:
                self._start_lingering()
        self._send_all(due)
        return receipt

    def flush(self) -> None:
        """Send everything that waits and return when all that was handed over is settled."""
        with self._changed:
            due, self._waiting = self._waiting, {}
            self._sending += len(due)
        self._send_all(due)
        with self._changed:
            self._changed.wait_for(lambda: not self._sending)

    def _send_all(self, due: dict[str, list[_Waiting]]) -> None:
        """Send what was taken from those who wait; whatever happens, `flush` must not wait for it for ever."""
        try:
            for actor, waiting in due.items():
                self._send_to_queue(actor, waiting)
        finally:
            with self._changed:
                self._sending -= len(due)
                self._changed.notify_all()

    def _start_lingering(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._linger, name="outbox", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _linger(self) -> None:
        """Send what has waited long enough while a handler is still busy."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                oldest = min(waiting[0].since for waiting in self._waiting.values())
                wait = oldest + LINGER_SECONDS - time.monotonic()
                if wait > 0:
                    self._changed.wait(wait)
                    continue
                cutoff = time.monotonic() - LINGER_SECONDS
                late = [actor for actor, waiting in self._waiting.items() if waiting[0].since <= cutoff]
                due = {actor: self._waiting.pop(actor) for actor in late}
                self._sending += len(due)
            self._send_all(due)

    def _send_to_queue(self, actor: str, waiting: list[_Waiting]) -> None:
        for group in pack(waiting):
            try:
                self._send_group(actor, group)
            except Exception as error:  # noqa: BLE001 - its tickets carry it to those who wait; the other queues get theirs
                problem = SendError(f"sending to the queue of {actor!r} failed: {error}")
                problem.__cause__ = error
                _settle_rest(group, problem)

    def _send_group(self, actor: str, group: list[_Waiting]) -> None:
        left = dict(enumerate(group))
        for tries_left in reversed(range(ENTRY_TRIES)):
            answer = self._sqs.send_message_batch(
                QueueUrl=self._queue_url(actor),
                Entries=[_entry(str(number), item.delivery) for number, item in left.items()],
            )
            for entry in answer.get("Successful", []):
                left.pop(int(entry["Id"])).receipt.resolve()
            for failed in answer.get("Failed", []):
                if failed.get("SenderFault") or not tries_left:
                    problem = f"{failed.get('Code')}: {failed.get('Message', '')}"
                    receipt = left.pop(int(failed["Id"])).receipt
                    receipt.resolve(SendError(f"the queue of {actor!r} did not take a message: {problem}"))
            if not left:
                return
        _settle_rest(left.values(), SendError(f"SQS did not say what became of a message for the queue of {actor!r}"))


def _settle_rest(group: Iterable[_Waiting], error: Exception) -> None:
    """Settle what is not settled yet."""
    for item in group:
        item.receipt.resolve(error)


def _entry(entry_id: str, delivery: Delivery) -> "SendMessageBatchRequestEntryTypeDef":
    entry: SendMessageBatchRequestEntryTypeDef = {"Id": entry_id, "MessageBody": delivery.body.decode("utf-8")}
    if delivery.delay:
        if delivery.delay > DELAY_SECONDS:
            raise ValueError(f"SQS delays by {DELAY_SECONDS} s at most, not {delivery.delay} s")
        entry["DelaySeconds"] = delivery.delay
    if delivery.group:
        entry["MessageGroupId"] = delivery.group
    return entry
