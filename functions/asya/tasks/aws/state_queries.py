"""Asks for the states of tasks without holding up envelopes (`protocol §5.4`)."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from asya.tasks.aws.state_reader import READ_LIMIT, NoAnswerError, StateReader
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.task_state import StateQuery, TaskState

# No call begins later; a call gives up after as long.
QUERY_SECONDS = 2.0
# After a call without an answer the table is left alone: each batch would wait for it again.
PAUSE_SECONDS = 30.0


class Notices(Protocol):
    """What operators learn of queries without an answer."""

    def failed(self, problem: str) -> None:
        """The table gave no usable answer."""

    def skipped(self) -> None:
        """A batch proceeds without a query, because the table did not answer lately."""


class StateQueries:
    """The queries of one process.

    Args:
        monotonic: seconds since an unspecified start.
    """

    def __init__(self, reader: StateReader, monotonic: Callable[[], float], notices: Notices) -> None:
        self._reader = reader
        self._monotonic = monotonic
        self._notices = notices
        self._paused_until = 0.0

    def ask(self, queries: Sequence[StateQuery], now: datetime) -> dict[str, TaskState]:
        """The states by task id; those that the table does not give in time are left out.

        Args:
            now: the time for the expiry check.
        """
        began = self._monotonic()
        states: dict[str, TaskState] = {}
        for group in _groups(queries):
            if self._monotonic() < self._paused_until:
                self._notices.skipped()
                break
            if self._monotonic() - began >= QUERY_SECONDS:
                break
            try:
                states |= self._reader.read(group, now)
            except NoAnswerError as error:
                self._paused_until = self._monotonic() + PAUSE_SECONDS
                self._notices.failed(f"{error}; not asked again for {PAUSE_SECONDS:g} s")
                break
            except TaskStoreError as error:
                self._notices.failed(str(error))
        return states


def _groups(queries: Sequence[StateQuery]) -> Iterator[Sequence[StateQuery]]:
    """Groups of queries that one call can answer; each query names a task and perhaps its root."""
    size = READ_LIMIT // 2
    return (queries[start : start + size] for start in range(0, len(queries), size))
