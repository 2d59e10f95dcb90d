"""The outbox: sends deliveries in batches, within 50 ms (`protocol §4`, `§5.8`)."""

import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError
from msgspec import field

from asya.function.aws.outages import REFUSALS, is_outage
from asya.function.aws.receipt import Receipt
from asya.function.hop import Delivery
from asya.function.nack import ServiceError
from asya.function.sqs import BATCH_ENTRIES, DELAY_SECONDS, pack

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

# The thread's wake-up and the request use the rest of the 50 ms.
LINGER_SECONDS = 0.04
# The tries for an entry that SQS fails to accept without a fault of the sender.
ENTRY_TRIES = 3


_POLICY = re.compile(
    r"with an explicit deny in an? [a-z -]{1,40}policy"
    r"|because no [a-z -]{1,40}policy allows the [A-Za-z0-9:-]{1,80} action"
)


class SendError(ServiceError):
    """SQS did not accept a message; the error names the target actor and the cause.

    Attributes:
        is_outage: False if SQS takes this message for wrong.
    """

    def __init__(self, text: str, *, is_outage: bool = True) -> None:
        super().__init__(text)
        self.is_outage = is_outage


class SendRefusedError(SendError):
    """SQS refuses the messages of this function for a queue: a failure of the infrastructure that does not pass by itself.

    Attributes:
        actor: the target actor.
        queue: the name of its queue.
        code: the code of the refusal, such as `AccessDenied`.
        reason: which kind of policy has refused it, such as `with an explicit deny in a resource-based policy`; empty if AWS
            does not say. It names no role and no account.
    """

    def __init__(self, actor: str, queue: str, code: str, cause: object) -> None:
        super().__init__(f"sending to the queue of {actor!r} failed: {cause}")
        self.actor = actor
        self.queue = queue
        self.code = code
        policy = _POLICY.search(str(cause))
        self.reason = policy[0] if policy is not None else ""


def send_error(actor: str, queue_url: str, error: Exception) -> SendError:
    """The error of a failed call for a queue; a `SendRefusedError` if it does not pass by itself.

    Args:
        actor: the actor whose queue it is.
    """
    code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
    return _send_error(actor, queue_url, code, error, is_outage=is_outage(error))


def _send_error(actor: str, queue_url: str, code: str, cause: object, *, is_outage: bool) -> SendError:
    if code in REFUSALS:
        return SendRefusedError(actor, queue_url.rpartition("/")[2], code, cause)
    return SendError(f"sending to the queue of {actor!r} failed: {cause}", is_outage=is_outage)


class _QueuedDelivery(msgspec.Struct):
    delivery: Delivery
    receipt: Receipt
    since: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self.delivery.body)


class Outbox:
    """Collects deliveries and sends them in batches for each queue.

    A full batch leaves at once. A background thread sends the other deliveries after 40 ms, and `flush` sends them at once.

    Args:
        prepare: converts a delivery before it is queued, such as the claim check.
        threaded: whether the background thread runs; without it, incomplete batches wait for `flush`.
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
        self._waiting: dict[str, list[_QueuedDelivery]] = {}
        self._changed = threading.Condition()
        self._sending = 0
        self._thread: threading.Thread | None = None

    def send(self, delivery: Delivery) -> Receipt:
        """Queue a delivery and return its receipt, which is resolved when SQS has answered."""
        receipt = Receipt(delivery.kind)
        try:
            prepared = self._prepare(delivery)
        except Exception as error:  # noqa: BLE001 - any error keeps the message on its queue
            receipt.resolve(error)
            return receipt
        with self._changed:
            waiting = self._waiting.setdefault(prepared.actor, [])
            waiting.append(_QueuedDelivery(prepared, receipt))
            due = {prepared.actor: self._waiting.pop(prepared.actor)} if len(waiting) >= BATCH_ENTRIES else {}
            self._sending += len(due)
            if not due and self._threaded:
                self._start_lingering()
        self._send_all(due)
        return receipt

    def flush(self) -> None:
        """Send all queued deliveries, and return when all receipts are resolved."""
        with self._changed:
            due, self._waiting = self._waiting, {}
            self._sending += len(due)
        self._send_all(due)
        with self._changed:
            self._changed.wait_for(lambda: not self._sending)

    def _send_all(self, due: dict[str, list[_QueuedDelivery]]) -> None:
        """Send deliveries. The count of running sends decreases even after an error, so `flush` never waits forever."""
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
        """Send deliveries after their linger time, while a handler runs."""
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

    def _send_to_queue(self, actor: str, waiting: list[_QueuedDelivery]) -> None:
        for group in pack(waiting):
            try:
                self._send_group(actor, group)
            except Exception as error:  # noqa: BLE001 - the receipts carry the error; the other queues are not affected
                problem = send_error(actor, self._queue_url(actor), error)
                problem.__cause__ = error
                _resolve_all(group, problem)

    def _send_group(self, actor: str, group: list[_QueuedDelivery]) -> None:
        left, queue_url = dict(enumerate(group)), self._queue_url(actor)
        for tries_left in reversed(range(ENTRY_TRIES)):
            answer = self._sqs.send_message_batch(
                QueueUrl=queue_url,
                Entries=[_entry(str(number), item.delivery) for number, item in left.items()],
            )
            for entry in answer.get("Successful", []):
                left.pop(int(entry["Id"])).receipt.resolve()
            for failure in answer.get("Failed", []):
                code = failure["Code"]
                is_wrong = failure.get("SenderFault", False)
                text = f"{code}: {failure.get('Message', '')}"
                error = _send_error(actor, queue_url, code, text, is_outage=not is_wrong)
                if is_wrong or isinstance(error, SendRefusedError) or not tries_left:
                    left.pop(int(failure["Id"])).receipt.resolve(error)
            if not left:
                return
        _resolve_all(left.values(), SendError(f"SQS gave no result for a message to the queue of {actor!r}"))


def _resolve_all(group: Iterable[_QueuedDelivery], error: Exception) -> None:
    """Resolve the receipts that are not resolved yet."""
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
