"""The stream cursor: which events of a task were shown, encoded as an event id (`protocol §13`, `Last-Event-ID`).

Reports arrive late and in any order, so a cursor names the events that were shown, not a position in a sequence.
Each hop takes one digit: how many of its steps were shown. Runs of equal digits are counted.

A cursor that grows too long settles its first hops: only a digest of their steps stays. If a late report changes
those hops, the digest no longer matches, and the stream shows a snapshot.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

AttemptKey = tuple[int, int]
"""Position and attempt."""

StepCounts = Mapping[AttemptKey, int]
"""Steps of each attempt: 1 is received, 2 adds processing, 3 adds completed."""

MAX_CURSOR_BYTES = 1400
_MAX_STEPS_LENGTH = 1000
_MAX_ATTEMPTS = 20_000
_MAX_PARTIAL_MARKS = 10

_VERSION = "1"
_FORM = re.compile(
    rf"{_VERSION}\.(\d{{1,5}})\.(p?|r|v|c|f|w[0-9a-f]{{8}})\.(\d{{1,3}})\.(\d{{1,15}})"
    r"\.(?:(\d{1,7})~([0-9a-f]{16})~)?([0-9x_-]*)\.([0-9~-]*)",
    re.ASCII,
)
_TOKENS = re.compile(r"(-?[0-3])(?:x(\d{1,7})_)?", re.ASCII)
_MARK = re.compile(r"(\d{1,7})-(\d{1,7})-(\d{1,7})-(\d{1,7})", re.ASCII)

EMPTY, PENDING, RUNNING, PROVISIONAL, CANCELED, FINAL = "", "p", "r", "v", "c", "f"


HopRun = tuple[int, int, int]
"""Position, attempt and receive: one run of a hop, whose partials are counted from 0."""


class PartialMark(NamedTuple):
    """The last partial of a run of a hop that was shown."""

    position: int
    attempt: int
    receive: int
    sequence: int

    @property
    def run(self) -> HopRun:
        """The run of the hop."""
        return (self.position, self.attempt, self.receive)


@dataclass(frozen=True, slots=True)
class Settled:
    """The hops before a position, reduced to a digest of their shown steps."""

    before: int
    digest: str


@dataclass(frozen=True, slots=True)
class StreamCursor:
    """The events of one generation of a task that were shown. The default cursor is empty.

    Attributes:
        state: The task's state: empty, pending, running, paused in one certain pause, ended provisionally, canceled, or final.
        percent: The furthest progress.
        run_at: The time of the latest note on a job run or a retry, in milliseconds since 1970; 0 without one.
        steps: The steps of all hops that are not settled.
        partials: The last shown partial of up to ten runs of hops, in order.
    """

    generation: int = 0
    state: str = EMPTY
    percent: int = 0
    run_at: int = 0
    steps: StepCounts = field(default_factory=dict)
    settled: Settled | None = None
    partials: tuple[PartialMark, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no event was shown."""
        return self.state == EMPTY and not self.steps and not self.partials

    def with_steps(self, key: AttemptKey, count: int) -> "StreamCursor":
        """Return a cursor that includes `count` steps of an attempt."""
        return replace(self, steps={**self.steps, key: count})

    def next_sequence(self, run: HopRun) -> int | None:
        """Return the sequence after the last shown partial of a run; None if the run is before the remembered ones.

        All partials of such a run count as shown.
        """
        last = next((each.sequence for each in self.partials if each.run == run), None)
        if last is not None:
            return last + 1
        is_earlier = len(self.partials) == _MAX_PARTIAL_MARKS and run < self.partials[0].run
        return None if is_earlier else 0

    def has_partial(self, mark: PartialMark) -> bool:
        """Return whether a partial, or a later one of its run, was shown."""
        following = self.next_sequence(mark.run)
        return following is None or mark.sequence < following

    def with_partial(self, mark: PartialMark) -> "StreamCursor":
        """Return a cursor that includes one more partial."""
        others = [each for each in self.partials if each.run != mark.run]
        return replace(self, partials=tuple(sorted([*others, mark])[-_MAX_PARTIAL_MARKS:]))

    def expand(self, current: StepCounts) -> "StreamCursor | None":
        """Return a cursor without settled hops; None if their steps have changed since.

        Args:
            current: All steps that are reported now.
        """
        if self.settled is None:
            return self
        earlier = {key: count for key, count in current.items() if key[0] < self.settled.before}
        if _digest(earlier) != self.settled.digest:
            return None
        return replace(self, steps={**earlier, **self.steps}, settled=None)

    def encode(self) -> str:
        """Return the event id: ASCII that needs no quoting in URLs, at most `MAX_CURSOR_BYTES` bytes."""
        before, steps = self._encode_steps()
        settled = self.settled
        if before:
            settled = Settled(before, _digest({key: count for key, count in self.steps.items() if key[0] < before}))
        prefix = f"{settled.before}~{settled.digest}~" if settled else ""
        partials = "~".join("-".join(map(str, mark)) for mark in self.partials)
        return f"{_VERSION}.{self.generation}.{self.state}.{self.percent}.{self.run_at}.{prefix}{steps}.{partials}"

    def _encode_steps(self) -> tuple[int, str]:
        """Return the position before which hops have to be settled (0 for none), and the text of the other steps."""
        first = self.settled.before if self.settled else 0
        text = _steps_text(self.steps, first)
        if len(text) <= _MAX_STEPS_LENGTH:
            return 0, text
        starts = sorted({position + 1 for position, _ in self.steps})
        index = bisect_left(starts, True, key=lambda start: len(_steps_text(self.steps, start)) <= _MAX_STEPS_LENGTH)
        return starts[index], _steps_text(self.steps, starts[index])


def paused_state(since: str) -> str:
    """Return the state of a task that is paused since a time."""
    return f"w{blake2b(since.encode(), digest_size=4).hexdigest()}"


def decode(text: str) -> StreamCursor | None:
    """Decode an event id; None if it is not a cursor."""
    match = _FORM.fullmatch(text) if len(text) <= MAX_CURSOR_BYTES else None
    if match is None:
        return None
    generation, state, percent, run_at, before, digest, steps, partials = match.groups()
    settled = Settled(int(before), digest) if before else None
    counts = _step_counts(steps, settled.before if settled else 0)
    marks = [_MARK.fullmatch(mark) for mark in partials.split("~")] if partials else []
    if counts is None or not all(marks):
        return None
    return StreamCursor(
        generation=int(generation),
        state=state,
        percent=min(int(percent), 100),
        run_at=int(run_at),
        steps=counts,
        settled=settled,
        partials=tuple(sorted(PartialMark(*map(int, mark.groups())) for mark in marks if mark))[-_MAX_PARTIAL_MARKS:],
    )


def _steps_text(steps: StepCounts, first: int) -> str:
    """Encode the steps from a position on: a digit for a first attempt, `-` and a digit for each further one."""
    return "".join(
        token * count if count * len(token) <= len(token) + len(str(count)) + 2 else f"{token}x{count}_"
        for token, count in _merge_runs(_tokens(steps, first))
    )


def _tokens(steps: StepCounts, first: int) -> Iterator[tuple[str, int]]:
    position, attempt = first - 1, 1
    for key in sorted(key for key in steps if key[0] >= first):
        if key[0] > position:
            yield "0", key[0] - position - 1
            position, attempt = key[0], 1
            if key[1] == 1:
                yield f"{steps[key]}", 1
                continue
            yield "0", 1
        yield "-0", key[1] - attempt - 1
        yield f"-{steps[key]}", 1
        attempt = key[1]


def _merge_runs(tokens: Iterator[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    last, total = "", 0
    for token, count in tokens:
        if not count:
            continue
        if token != last:
            if total:
                yield last, total
            last, total = token, 0
        total += count
    if total:
        yield last, total


def _step_counts(text: str, first: int) -> dict[AttemptKey, int] | None:
    counts: dict[AttemptKey, int] = {}
    position, attempt, end = first - 1, 1, 0
    for token in _TOKENS.finditer(text):
        if token.start() != end:
            return None
        end = token.end()
        done, count = int(token[1][-1]), int(token[2] or 1)
        if done and len(counts) + count > _MAX_ATTEMPTS:
            return None
        further = token[1].startswith("-")
        if done:
            counts |= {
                (position, attempt + 1 + offset) if further else (position + 1 + offset, 1): done
                for offset in range(count)
            }
        position, attempt = (position, attempt + count) if further else (position + count, 1)
    return counts if end == len(text) else None


def _digest(steps: StepCounts) -> str:
    return blake2b(_steps_text(steps, 0).encode(), digest_size=8).hexdigest()
