"""Lambda's SQS event sources: they receive batches, invoke a function and delete the processed messages."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from asya.protocol import names
from asya.testing.services.functions import Function
from asya.testing.services.process import Process, ProcessCrashed, Simulation, running
from asya.testing.services.queues import Message, Queues


class InvocationObserver(Protocol):
    """Observes invocations that end badly."""

    def crashed(self, messages: list[Message], process: Process) -> None:
        """A process died with these messages in its batch."""

    def failed(self, process: Process, error: Exception) -> None:
        """An invocation raised, and keeps its whole batch."""


@dataclass
class EventSources:
    """The event sources of a mesh, by queue name."""

    simulation: Simulation
    observer: InvocationObserver
    functions: dict[str, Function]
    queues: Queues | None = None
    _polled: set[str] = field(default_factory=set)

    def wake(self, queue: str) -> None:
        """Poll a queue soon, because it may have visible messages."""
        if queue in self.functions and queue not in self._polled:
            self._polled.add(queue)
            self.simulation.scheduler.after(self.simulation.random.uniform(0.0, 0.2), lambda: self.poll(queue))

    def poll(self, queue: str) -> None:
        """Take batches of a queue as far as the concurrency of its function allows."""
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
        process.invocation = self.simulation.new_invocation(function.actor, messages, self.simulation.scheduler.seconds)
        process.ends_at = self.simulation.scheduler.seconds + function.timeout
        process.note(f"receives {', '.join(f'{message.message_id[:8]}({message.receives})' for message in messages)}")
        failed_ids: set[str] | None = None
        with running(process):
            try:
                sent_at = [self.simulation.scheduler.at(message.sent_at) for message in messages]
                answer = entry.process({"Records": list(map(_record, messages, sent_at))})
                failed_ids = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
                if self.simulation.faults.kills(function.actor):
                    process.crash("after its batch")
            except ProcessCrashed:
                self.observer.crashed(messages, process)
            except Exception as error:  # noqa: BLE001 - an invocation that fails keeps its whole batch
                self.observer.failed(process, error)
        if process.is_alive and failed_ids is not None:
            self._delete_handled(
                queue, [message for message in messages if message.message_id not in failed_ids], process
            )
        function.release(process, entry)
        function.running -= 1
        for name, other in self.functions.items():
            if other is function:  # it may consume several queues
                self.wake(name)

    def _delete_handled(self, queue: str, messages: list[Message], process: Process) -> None:
        faults, seconds = self.simulation.faults, self.simulation.scheduler.seconds
        for message in messages:
            if faults.loses_ack(message.message_id, seconds):
                process.note(f"the ack of {message.message_id[:8]} is lost")
            else:
                process.note(f"acks {message.message_id[:8]}")
                self._queues.delete(queue, message.receipt, process)

    @property
    def _queues(self) -> Queues:
        if self.queues is None:
            raise RuntimeError("the event sources have no queues; set `queues` first")
        return self.queues


def _record(message: Message, sent_at: datetime) -> dict[str, Any]:
    """Convert a message to a record of a Lambda event."""
    sent = int(sent_at.timestamp() * 1000)
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
        "messageAttributes": {name: _attribute(value) for name, value in message.attributes.items()},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:eu-west-1:123456789012:{message.queue}",
        "awsRegion": "eu-west-1",
    }


def _attribute(value: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute as Lambda gives it: its keys begin small, and bytes are base64."""
    given = {f"{key[:1].lower()}{key[1:]}": content for key, content in value.items()}
    if isinstance(given.get("binaryValue"), bytes):
        given["binaryValue"] = b64encode(given["binaryValue"]).decode()
    return given
