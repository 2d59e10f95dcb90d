"""Reads dead letters without keeping them from those who report and redrive them.

A receive hides a message from all other readers. So a scan is short, and it makes every message visible again at its end; after a
crash SQS does so. It deletes nothing. Messages that somebody redrives meanwhile are hidden from the scan, and counted.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from asya.capabilities.dead_letters.aws.letters import DeadLetterQueue, MessageCount, ReceivedMessage
from asya.capabilities.dead_letters.letters import DeadLetter, read_letter

HIDE_SECONDS = 60
"""Visibility timeout of a message during a scan; well over `SCAN_SECONDS`, so the end of a scan releases its own messages alone."""
SCAN_SECONDS = 10.0
SCAN_BYTES = 64 * 1024 * 1024
"""Bytes of the bodies of a scan: they are in memory at once, and an actor may fill its own dead-letter queue."""
_THREADS = 8


@dataclass(frozen=True, slots=True)
class Scanned:
    """The letters of a scan, and whether the queues may have more."""

    letters: list[DeadLetter]
    has_more: bool


@dataclass(frozen=True)
class LetterScan:
    """The dead-letter queues of a mesh.

    Attributes:
        queue: returns the dead-letter queue of an actor.
        monotonic: seconds of a clock that never goes back.
        is_threaded: whether queues may be counted in threads.

    Raises:
        ClientError, BotoCoreError: from every method, if SQS fails or denies access.
    """

    queue: Callable[[str], DeadLetterQueue]
    monotonic: Callable[[], float]
    is_threaded: bool = True

    def counts(self, actors: Sequence[str]) -> dict[str, MessageCount]:
        """Return the approximate number of dead letters of each actor."""
        if not self.is_threaded or len(actors) < 2:
            return {actor: self.queue(actor).count() for actor in actors}
        with ThreadPoolExecutor(_THREADS) as executor:
            return dict(zip(actors, executor.map(lambda actor: self.queue(actor).count(), actors), strict=True))

    def read(self, actors: Sequence[str], limit: int) -> Scanned:
        """Read up to `limit` letters of these actors, queue after queue."""
        ends = self.monotonic() + SCAN_SECONDS
        letters: list[DeadLetter] = []
        size = 0
        for actor in actors:
            if len(letters) >= limit or size > SCAN_BYTES or self.monotonic() > ends:
                return Scanned(letters, True)
            room = limit - len(letters)
            seen = self._seen(self.queue(actor), room, SCAN_BYTES - size, ends)
            letters += [read_letter(message.arrival, actor, message.problem) for message in seen[:room]]
            size += _size(seen)
            if len(seen) > room or size > SCAN_BYTES or self.monotonic() > ends:
                return Scanned(letters, True)
        return Scanned(letters, False)

    def _seen(self, queue: DeadLetterQueue, room: int, bytes_left: int, ends: float) -> list[ReceivedMessage]:
        """Receive messages until there are more than `room`, or more bytes than are left, and make them visible again."""
        seen: list[ReceivedMessage] = []

        def may_continue() -> bool:
            return len(seen) <= room and _size(seen) <= bytes_left and self.monotonic() <= ends

        try:
            for batch in queue.scan(hide_seconds=HIDE_SECONDS, may_continue=may_continue):
                seen += batch
        finally:
            queue.release([message.receipt_handle for message in seen])
        return seen


def _size(messages: Sequence[ReceivedMessage]) -> int:
    return sum(message.arrival.size for message in messages)
