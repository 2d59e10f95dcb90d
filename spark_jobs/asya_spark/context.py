"""The context of a job: the envelope at work."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Context:
    """The envelope at work; for a DataFrame of envelopes only the run, with the run id as `id`.

    Attributes:
        position: number of hops done before this one.
        attempt: from 1.
        generation: 0, and one more for each replay.
        deadline_at: RFC 3339, if there is a deadline.
        is_run: whether this is the context of a DataFrame of envelopes.
        scratch: a reference prefix for temporary data of this envelope in this attempt; ends with `/`.
        run: the id of the run.
    """

    id: str
    parent_id: str
    headers: Mapping[str, Any]
    actor: str
    position: int
    attempt: int
    deadline_at: str | None
    scratch: str
    generation: int = 0
    is_run: bool = False
    run: str = ""
    _publish: Callable[[Mapping[str, Any]], None] | None = field(default=None, repr=False, compare=False)
    _ordinals: Counter[str] = field(default_factory=Counter, repr=False, compare=False)

    def next_ordinal(self, what: str) -> int:
        """The number of earlier calls with the same argument for this envelope, from 0."""
        self._ordinals[what] += 1
        return self._ordinals[what] - 1

    def fly(self, message: Mapping[str, Any]) -> None:
        """Publishes a partial for streams; not part of the result (`protocol §7`, FLY). Thread-safe.

        In a DataFrame job the partial reaches the streams of all envelopes.

        Args:
            message: a JSON object of at most 60 KiB.

        Raises:
            ValueError, TypeError: if the message is not such an object.
        """
        if self._publish is not None:
            self._publish(message)


_current: ContextVar[Context] = ContextVar("asya_spark_context")


def context() -> Context:
    """The envelope at work.

    Raises:
        RuntimeError: outside a job, or in a thread that was started before the job was called.
    """
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError(
            "no envelope at work: call asya_spark.context() inside a job, or in a thread that it started"
        ) from None


@contextmanager
def active_context(current: Context) -> Iterator[None]:
    """Makes `context()` return `current` within the block."""
    token = _current.set(current)
    try:
        yield
    finally:
        _current.reset(token)
