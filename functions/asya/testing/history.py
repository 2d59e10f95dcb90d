"""What a cloud has seen: each envelope that a queue accepted, in order."""

from collections import defaultdict
from dataclasses import dataclass, field

from asya.capabilities.legacy.envelopes import read_envelope
from asya.protocol.codec import ParseError
from asya.protocol.envelope import Envelope
from asya.testing.services.process import Process
from asya.testing.services.queues import Message

_REPORT_QUEUES = ("-x-reports", "-x-ends")


@dataclass(frozen=True)
class Sent:
    """An envelope that a queue accepted.

    Attributes:
        seconds: virtual seconds of the send.
    """

    envelope: Envelope
    seconds: float


@dataclass
class History:
    """Observes the services of a cloud.

    Attributes:
        sent: envelope id → its messages in the order of their sends.
        dead_letters: the messages that moved to a dead-letter queue.
        problems: what should never happen: an invocation that raised.
    """

    sent: dict[str, list[Sent]] = field(default_factory=lambda: defaultdict(list))
    dead_letters: list[Message] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def children_of(self, envelope_id: str) -> list[str]:
        """The ids of an envelope's children, in the order of their first messages."""
        return [child for child, sent in self.sent.items() if sent[0].envelope.parent_id == envelope_id]

    # --- QueueObserver ---------------------------------------------------------------------------------------------

    def accepted(self, message: Message, sender: Process | None) -> None:
        """See `QueueObserver`."""
        if message.queue.endswith(_REPORT_QUEUES):
            return
        try:
            envelope = read_envelope(message.body.encode("utf-8", "surrogatepass"), message_id=message.message_id)
        except ParseError:
            return  # a message of a system function, or a bad one, which ends in x-sump as an envelope
        self.sent[envelope.id].append(Sent(envelope, message.sent_at))

    def deleted(self, message: Message, by: Process | None) -> None:
        """See `QueueObserver`."""

    def dead_lettered(self, message: Message) -> None:
        """See `QueueObserver`."""
        self.dead_letters.append(message)

    def given_up(self, message: Message, sender: Process | None) -> None:
        """See `QueueObserver`."""
        self.dead_letters.append(message)

    def moved(self, message: Message) -> None:
        """See `QueueObserver`."""

    # --- ObjectObserver --------------------------------------------------------------------------------------------

    def put(self, key: str, body: bytes, by: Process, before: bytes | None) -> None:
        """See `ObjectObserver`."""

    def removed(self, key: str, body: bytes, by: Process) -> None:
        """See `ObjectObserver`."""

    # --- InvocationObserver ----------------------------------------------------------------------------------------

    def crashed(self, messages: list[Message], process: Process) -> None:
        """See `InvocationObserver`."""

    def failed(self, process: Process, error: Exception) -> None:
        """See `InvocationObserver`."""
        self.problems.append(f"{process.name} raised {type(error).__name__}: {error}")
