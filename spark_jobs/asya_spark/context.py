"""What a job may know about the envelope it works for."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Context:
    """The envelope at work. With a DataFrame of envelopes there is no single one: `id` is then the run's, the rest is empty.

    Attributes:
        position: number of hops done before this one.
        attempt: from 1.
        deadline_at: RFC 3339, if there is a deadline.
        scratch: a reference prefix, ending with `/`, for temporary data of this envelope in this run alone.
    """

    id: str
    parent_id: str
    headers: Mapping[str, Any]
    actor: str
    position: int
    attempt: int
    deadline_at: str | None
    scratch: str
    _say: Callable[[Mapping[str, Any]], None] | None = field(default=None, repr=False, compare=False)

    def fly(self, message: Mapping[str, Any]) -> None:
        """Tell whoever looks on at once; never part of the result (`protocol §7`, FLY). From any thread.

        With a DataFrame of envelopes it is told to those who look on any of them.

        Args:
            message: a JSON object of at most 60 KiB.

        Raises:
            ValueError, TypeError: if it is none.
        """
        if self._say is not None:
            self._say(message)


_current: ContextVar[Context] = ContextVar("asya_spark_context")


def context() -> Context:
    """The envelope at work.

    Raises:
        RuntimeError: outside of a job, or in a thread that the job started itself (ask before, and hand it over).
    """
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError(
            "there is no envelope at work here: call asya_spark.context() inside of a job, "
            "and in the thread the job was called in"
        ) from None


@contextmanager
def at_work(current: Context) -> Iterator[None]:
    """Make `current` what `context()` gives."""
    token = _current.set(current)
    try:
        yield
    finally:
        _current.reset(token)
