"""Lambda's SQS event sources: they receive batches, invoke a function and delete the processed messages."""

from dataclasses import dataclass, field, replace
from typing import Any

from asya.protocol import names
from tests.simulation.checks.ledger import Ledger
from tests.simulation.process import Invocation, Process, ProcessCrashed, Simulation, running
from tests.simulation.scheduler import START_TIME
from tests.simulation.services.functions import Function
from tests.simulation.services.queues import Message, Queues


@dataclass
class EventSources:
    """The event sources of a mesh, by queue name."""

    simulation: Simulation
    ledger: Ledger
    functions: dict[str, Function]
    queues: Queues | None = None
    _polled: set[str] = field(default_factory=set)

    def wake(self, queue: str) -> None:
        """Poll a queue soon, because it may have visible messages."""
        if queue in self.functions and queue not in self._polled:
            self._polled.add(queue)
            self.simulation.scheduler.after(self.simulation.random.uniform(0.0, 0.2), lambda: self._poll(queue))

    def _poll(self, queue: str) -> None:
        self._polled.discard(queue)
        function, queues = self.functions[queue], self._queues
        outage, seconds = self.simulation.faults.profile.report_outage, self.simulation.scheduler.seconds
        if function.actor == names.REPORTS and outage is not None and outage[0] <= seconds < outage[1]:
            self.simulation.scheduler.after(outage[1] - seconds, lambda: self.wake(queue))
            return
        while function.running < function.concurrency and queues.visible(queue):
            messages = queues.receive(queue, self.simulation.random.randint(1, function.batch_size))
            if messages:
                function.running += 1
                copies = [replace(message) for message in messages]
                self.simulation.scheduler.start(lambda copies=copies: self._invoke(queue, copies))  # type: ignore[misc]

    def _invoke(self, queue: str, messages: list[Message]) -> None:
        function = self.functions[queue]
        process, entry = function.acquire()
        process.invocation = Invocation(function.actor, messages, self.simulation.scheduler.seconds)
        process.ends_at = self.simulation.scheduler.seconds + function.timeout
        process.note(f"receives {', '.join(f'{message.message_id[:8]}({message.receives})' for message in messages)}")
        failed_ids: set[str] | None = None
        with running(process):
            try:
                answer = entry.process({"Records": [_record(message) for message in messages]})
                failed_ids = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
            except ProcessCrashed:
                self._record_crash(messages, process)
            except Exception as error:  # noqa: BLE001 - an invocation that fails keeps its whole batch
                self.ledger.report_violation(f"{process.name} raised {error!r}")
        if process.is_alive and failed_ids is not None:
            self._delete_handled(
                queue, [message for message in messages if message.message_id not in failed_ids], process
            )
        function.release(process, entry)
        function.running -= 1
        for name, other in self.functions.items():
            if other is function:  # it may consume several queues
                self.wake(name)

    def _record_crash(self, messages: list[Message], process: Process) -> None:
        """Record the batch of a handler that crashed its process."""
        if process.crash_cause:
            for message in messages:
                self.ledger.crash_causes[message.message_id].add(process.crash_cause)

    def _delete_handled(self, queue: str, messages: list[Message], process: Process) -> None:
        faults, seconds = self.simulation.faults, self.simulation.scheduler.seconds
        for message in messages:
            if faults.happens(faults.profile.lost_acks, seconds):
                process.note(f"the ack of {message.message_id[:8]} is lost")
            else:
                process.note(f"acks {message.message_id[:8]}")
                self._queues.delete(queue, message.receipt, process)

    @property
    def _queues(self) -> Queues:
        if self.queues is None:
            raise RuntimeError("the event sources have no queues; set `queues` first")
        return self.queues


def _record(message: Message) -> dict[str, Any]:
    """Convert a message to a record of a Lambda event."""
    sent = int((START_TIME.timestamp() + message.sent_at) * 1000)
    return {
        "messageId": message.message_id,
        "receiptHandle": message.receipt,
        "body": message.body,
        "attributes": {
            "ApproximateReceiveCount": str(message.receives),
            "SentTimestamp": str(sent),
            "SenderId": message.sender,
            "ApproximateFirstReceiveTimestamp": str(sent),
        },
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:eu-west-1:123456789012:{message.queue}",
        "awsRegion": "eu-west-1",
    }
