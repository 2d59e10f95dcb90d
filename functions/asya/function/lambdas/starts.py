"""Counts the starts of the work on a message, and gives up one whose starts do not come to an end (`protocol §4.starts`)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import field
from msgspec.structs import replace

from asya.function.aws.failed_messages import FailedMessages, StartMarks, is_marked, starts_of
from asya.function.aws.outages import ServiceHealth, ServiceOffError
from asya.function.aws.telemetry import Telemetry
from asya.function.hop import Arrival, may_be_sent

if TYPE_CHECKING:
    from asya.function.lambdas.batch import Record

# The starts that a process remembers in order to take them back.
_MOST_KEPT = 1000


class Starts(msgspec.Struct, frozen=True):
    """The starts of the messages of one queue.

    Attributes:
        limit: the starts of a message (`max_receives`), the first included.
        epoch_seconds: the current time, in seconds since 1970.
        given_up: returns the body of a message that is given up.
        note_sender: notes who has sent a message that is given up, by its body: SQS may move it back.
    """

    actor: str
    limit: int
    marks: StartMarks
    failed: FailedMessages
    health: ServiceHealth
    telemetry: Telemetry
    epoch_seconds: Callable[[], float]
    note_sender: Callable[[bytes, str], None]
    given_up: Callable[[Arrival], bytes]
    _kept: list[Arrival] = field(default_factory=list)

    @property
    def are_single(self) -> bool:
        """Whether a message may start once only, so that each start is marked, and no neighbour may use it up."""
        return self.limit == 1

    def begin(self, record: "Record") -> bool:
        """Mark a start before the work; False if the message has had its starts, and is in the dead-letter queue now.

        The first start is free. A redelivered message waits without work while this process knows that a service is off.

        Raises:
            ClientError, BotoCoreError: the start cannot be marked, or the message not be given up. It has not started.
        """
        if not is_marked(record.arrival, self.limit):
            return True
        for outage in self.health.off:
            raise ServiceOffError(service=outage.service, cause=outage.cause)
        self._take_back_kept()
        marks = self.marks.add(record.arrival, epoch_seconds=self.epoch_seconds())
        if starts_of(marks, self.limit) <= self.limit or not may_be_sent(record.arrival):
            return True  # one that may not be sent becomes a dead letter by its receives
        self._give_up(record)
        return False

    def take_back(self, record: "Record") -> None:
        """Uncount a start that an outage has ended, or one whose mark may be written although nobody knows.

        If that fails, the next start in this process tries again. If this process dies before, the message has one start less.
        """
        if not is_marked(record.arrival, self.limit):
            return
        try:
            self.marks.take_back(record.arrival)
        except (ClientError, BotoCoreError) as error:
            self.telemetry.log.warning("start not taken back", exc_info=error, message_id=record.message_id)
            if len(self._kept) < _MOST_KEPT:
                self._kept.append(replace(record.arrival, body=b""))

    def _take_back_kept(self) -> None:
        """Take back the starts that could not be taken back before."""
        while self._kept:
            self.marks.take_back(self._kept[-1])
            self._kept.pop()

    def _give_up(self, record: "Record") -> None:
        body = self.given_up(record.arrival)
        # The body is the admitted one, so the notes of the message as it came do not hold for it.
        self.note_sender(body, record.arrival.sender)
        starts = "the only start" if self.are_single else f"{self.limit} starts"
        self.failed.keep(body, f"{starts} did not come to an end", record.group)
        self.telemetry.log.error("message given up", message_id=record.message_id, starts=self.limit)
