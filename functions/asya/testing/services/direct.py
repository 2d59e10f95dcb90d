"""S3 and SQS in memory for tests of one function: calls take no time, and have the faults that a test plans."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from threading import Condition, RLock
from typing import Any, TypeVar

from asya.testing.planned_faults import PlannedFaults
from asya.testing.services.clients import Bucket, S3Client
from asya.testing.services.faults import Fault, FaultProfile
from asya.testing.services.process import Process, ProcessCrashed, Simulation
from asya.testing.services.queues import Message, Queue, Queues, Refusal, SqsClient
from asya.testing.services.scheduler import EventLog, Scheduler

T = TypeVar("T")


def new_simulation() -> Simulation:
    """A simulation whose time passes only in `Scheduler.run`, and whose faults are planned."""
    random = Random(0)
    return Simulation(Scheduler(), PlannedFaults(random, FaultProfile()), random, EventLog())


@dataclass
class DirectProcess(Process):
    """The process of the test itself: no scheduler runs it, its calls take no time, and they may come from any thread."""

    name: str = "test"
    simulation: Simulation = field(default_factory=new_simulation)
    lock: Any = field(default_factory=RLock)

    @property
    def faults(self) -> PlannedFaults:
        """What goes wrong."""
        assert isinstance(self.simulation.faults, PlannedFaults)
        return self.simulation.faults

    def call(
        self,
        service: str,
        what: str,
        do: Callable[[], T],
        *,
        refusal: Callable[[], Exception],
        lost_response: Callable[[], Exception],
        in_part: Callable[[], T] | None = None,
        repeatable: bool = True,
    ) -> T:
        """See `Process`."""
        with self.lock:
            fault = self.simulation.faults.draw(service, what, self.simulation.scheduler.seconds)
            if fault is Fault.CRASH_BEFORE:
                raise ProcessCrashed(what)
            if fault is Fault.REFUSED:
                raise refusal()
            answer = in_part() if fault is Fault.IN_PART and in_part is not None else do()
            if fault is Fault.REPEATED and repeatable:
                answer = do()
            if fault is Fault.CRASH_AFTER:
                raise ProcessCrashed(what)
            if fault is Fault.ANSWER_LOST:
                raise lost_response()
            return answer


@dataclass
class MemoryS3(S3Client):
    """An S3 client over one bucket in memory.

    Attributes:
        calls: (action, key) of each call in order, also of failed ones; actions are put, get, head and delete.
        fails: whether a call (action, key) fails with 503.
    """

    process: DirectProcess = field(default_factory=DirectProcess)
    bucket: Bucket = field(default_factory=Bucket)
    calls: list[tuple[str, str]] = field(default_factory=list)
    fails: Callable[[str, str], bool] = lambda _action, _key: False

    def __post_init__(self) -> None:
        self.process.faults.plans.append(self._fault)

    @property
    def objects(self) -> dict[str, bytes]:
        """The content of the objects by key."""
        return self.bucket.objects

    @property
    def metadata(self) -> dict[str, Mapping[str, str]]:
        """The metadata of the objects by key."""
        return self.bucket.metadata

    def keys(self, prefix: str = "") -> list[str]:
        """Return the sorted keys below a prefix."""
        return sorted(key for key in self.objects if key.startswith(prefix))

    def content(self, key: str) -> bytes:
        """Return the content of an object."""
        return self.objects[key]

    def _fault(self, _service: str, what: str) -> Fault:
        action, _, key = what.partition(" ")
        action = action.removesuffix("Object").lower()
        self.calls.append((action, key))
        return Fault.REFUSED if self.fails(action, key) else Fault.NONE


REPORT_QUEUES = ("-x-reports", "-x-ends")


class _AnyQueue(dict[str, Queue]):
    """Queues by name, each made by its first message."""

    def __missing__(self, name: str) -> Queue:
        return self.setdefault(name, Queue(name, visibility=30.0, max_receives=5))


@dataclass
class _Record:
    """The accepted messages by queue, without those that a test takes."""

    takes: Callable[[str], bool]
    changed: Condition
    sent: defaultdict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))

    def accepted(self, message: Message, sender: Process | None) -> None:
        """See `QueueObserver`."""
        if not self.takes(message.queue):
            self.sent[message.queue].append(message)
            self.changed.notify_all()

    def given_up(self, message: Message, sender: Process | None) -> None:
        """See `QueueObserver`."""
        self.sent[f"{message.queue}-dlq"].append(message)

    def deleted(self, message: Message, by: Process | None) -> None:
        """See `QueueObserver`."""

    def dead_lettered(self, message: Message) -> None:
        """See `QueueObserver`."""

    def moved(self, message: Message) -> None:
        """See `QueueObserver`."""


class MemorySqs(SqsClient):
    """An SQS client over queues in memory; a queue exists when a message comes.

    Attributes:
        sent: queue name → accepted messages in order.
        requests: queue name and size of each batch.
        calls: queue name of each send call, also of failed ones.
        deleted: the receipt handles of deleted messages.
        visibility: receipt handle → visibility timeout in seconds.
        refuse: queue name → the faults of the next messages, one each.
        refuse_always: queue name → the fault of all further messages.
        broken: the operations that fail with ServiceUnavailable, such as `DeleteMessage`.
        take_reports: takes the body of each message to a report queue, by queue name; False if SQS does not accept it.
    """

    def __init__(
        self,
        *,
        refuse: Mapping[str, Sequence[Refusal]] | None = None,
        refuse_always: Mapping[str, Refusal] | None = None,
        broken: Iterable[str] = (),
        take_reports: Callable[[str, str], bool] | None = None,
    ) -> None:
        process = DirectProcess()
        record = _Record(self._takes, Condition(process.lock))
        queues = Queues(process.simulation, record, wake=lambda _: None, queues=_AnyQueue())
        super().__init__(process, queues, "AIDATEST")
        self.sent, self._changed = record.sent, record.changed
        self.requests: list[tuple[str, int]] = []
        self.calls: list[str] = []
        self.deleted: list[str] = []
        self.visibility: dict[str, int] = {}
        self.refuse = {queue: list(faults) for queue, faults in (refuse or {}).items()}
        self.refuse_always = dict(refuse_always or {})
        self.broken = set(broken)
        self.take_reports = take_reports
        self.queues.refusal = self._planned
        process.faults.plans.append(self._fault)

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> dict[str, Any]:  # noqa: N803
        """Delete one message."""
        answer = super().delete_message(QueueUrl=QueueUrl, ReceiptHandle=ReceiptHandle)
        self.deleted.append(ReceiptHandle)
        return answer

    def change_message_visibility_batch(
        self,
        *,
        QueueUrl: str,  # noqa: N803
        Entries: Sequence[Mapping[str, Any]],  # noqa: N803
    ) -> dict[str, Any]:
        """Set the visibility timeout of messages."""
        answer = super().change_message_visibility_batch(QueueUrl=QueueUrl, Entries=Entries)
        self.visibility |= {entry["ReceiptHandle"]: entry["VisibilityTimeout"] for entry in Entries}
        return answer

    def wait_until_sent(self, queue: str, count: int = 1, seconds: float = 60.0) -> bool:
        """Wait until a queue has accepted this many messages; return False at the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.sent[queue]) >= count, timeout=seconds)

    def _known(self, name: str) -> None:
        """Every queue is known."""

    def _fault(self, _service: str, what: str) -> Fault:
        action, queue, *size = what.split()
        if action.startswith("SendMessage"):
            self.calls.append(queue)
        if action in self.broken:
            return Fault.REFUSED
        if action.startswith("SendMessage"):
            self.requests.append((queue, int(size[0].strip("()")) if size else 1))
        return Fault.NONE

    def _planned(self, queue: str, body: str) -> Refusal | None:
        next_ones = self.refuse.get(queue)
        planned = next_ones.pop(0) if next_ones else self.refuse_always.get(queue)
        if planned is None and self._takes(queue):
            assert self.take_reports is not None
            return None if self.take_reports(queue, body) else Refusal(sender_fault=True)
        return planned

    def _takes(self, queue: str) -> bool:
        return self.take_reports is not None and queue.endswith(REPORT_QUEUES)
