"""What somebody who follows a task has been shown, small enough to be the id of an event (`protocol §13`, `Last-Event-ID`).

It says *what* was shown and not how far one had come in some order: reports come late and in any order, and what comes late
is still to be shown. How many steps of which hops were shown is one digit a hop, runs of equal digits counted. What would make an
id too long is settled: of the earliest hops only a digest is kept. As long as nothing more is heard of them that says
it all; when it does not, all that can be shown is how things are now.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

Cell = tuple[int, int]  # position, attempt
Steps = Mapping[Cell, int]  # of each attempt at a hop: 1 received, 2 processing too, 3 completed as well

MAX_CURSOR_BYTES = 1400  # bytes; what is longer was not made here
_LONGEST_STEPS = 1000
_MOST_CELLS = 20_000
_MOST_RUNS_TOLD = 4

_VERSION = "1"
_FORM = re.compile(
    rf"{_VERSION}\.(\d{{1,5}})\.(p?|r|f|w[0-9a-f]{{8}})\.(\d{{1,3}})\.(\d{{1,15}})"
    r"\.(?:(\d{1,7})~([0-9a-f]{16})~)?([0-9x_-]*)\.([0-9~-]*)",
    re.ASCII,
)
_TOKENS = re.compile(r"(-?[0-3])(?:x(\d{1,7})_)?", re.ASCII)
_MARK = re.compile(r"(\d{1,7})-(\d{1,7})-(\d{1,7})-(\d{1,7})", re.ASCII)

FRESH, PENDING, RUNNING, FINAL = "", "p", "r", "f"


class PartialMark(NamedTuple):
    """The last message of a hop's handler that was shown."""

    position: int
    attempt: int
    receive: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Settled:
    """The hops before a position, of which no more is told but a digest of the steps that were shown."""

    before: int
    digest: str


@dataclass(frozen=True, slots=True)
class StreamCursor:
    """What has been shown of a generation of a task; made without arguments, nothing.

    Attributes:
        state: the task's: nothing yet, pending, running, waiting in a certain pause, at its end.
        percent: the furthest progress.
        run_at: of the latest note on a job run, in milliseconds since 1970; 0 if there was none.
        steps: all, but those of settled hops.
        partials: of the hops of whose handlers something was shown, the last few, in order.
    """

    generation: int = 0
    state: str = FRESH
    percent: int = 0
    run_at: int = 0
    steps: Steps = field(default_factory=dict)
    settled: Settled | None = None
    partials: tuple[PartialMark, ...] = ()

    @property
    def is_fresh(self) -> bool:
        """Whether nothing at all has been shown."""
        return self.state == FRESH and not self.steps and not self.partials

    def with_steps(self, cell: Cell, count: int) -> "StreamCursor":
        """The same with so many steps of an attempt at a hop."""
        return replace(self, steps={**self.steps, cell: count})

    def has_partial(self, mark: PartialMark) -> bool:
        """Whether a message, or one behind it in its hop, was shown; of hops long past all count as shown."""
        told = next((each for each in self.partials if each.position == mark.position), None)
        if told is not None:
            return mark <= told
        return len(self.partials) == _MOST_RUNS_TOLD and mark.position < self.partials[0].position

    def with_partial(self, mark: PartialMark) -> "StreamCursor":
        """The same with one message more."""
        others = [each for each in self.partials if each.position != mark.position]
        return replace(self, partials=tuple(sorted([*others, mark])[-_MOST_RUNS_TOLD:]))

    def unsettled(self, present: Steps) -> "StreamCursor | None":
        """The same without settled hops; None if more is known of them now than was shown.

        Args:
            present: all steps that are known.
        """
        if self.settled is None:
            return self
        earlier = {cell: steps for cell, steps in present.items() if cell[0] < self.settled.before}
        if _digest(earlier) != self.settled.digest:
            return None
        return replace(self, steps={**earlier, **self.steps}, settled=None)

    def encode(self) -> str:
        """The id: ASCII that needs no quoting in URLs, at most `MAX_CURSOR_BYTES` bytes."""
        before, steps = self._text_of_steps()
        settled = self.settled
        if before:
            settled = Settled(before, _digest({cell: count for cell, count in self.steps.items() if cell[0] < before}))
        prefix = f"{settled.before}~{settled.digest}~" if settled else ""
        partials = "~".join("-".join(map(str, mark)) for mark in self.partials)
        return f"{_VERSION}.{self.generation}.{self.state}.{self.percent}.{self.run_at}.{prefix}{steps}.{partials}"

    def _text_of_steps(self) -> tuple[int, str]:
        """From which position on steps are told one by one (0: all), and those."""
        first = self.settled.before if self.settled else 0
        text = _text(self.steps, first)
        if len(text) <= _LONGEST_STEPS:
            return 0, text
        starts = sorted({position + 1 for position, _ in self.steps})
        index = bisect_left(starts, True, key=lambda start: len(_text(self.steps, start)) <= _LONGEST_STEPS)
        return starts[index], _text(self.steps, starts[index])


def paused_state(since: str) -> str:
    """The state of a task that waits in a pause."""
    return f"w{blake2b(since.encode(), digest_size=4).hexdigest()}"


def decode(text: str) -> StreamCursor | None:
    """Read an id back; None if it is none of ours."""
    found = _FORM.fullmatch(text) if len(text) <= MAX_CURSOR_BYTES else None
    if found is None:
        return None
    generation, state, percent, run_at, before, digest, steps, partials = found.groups()
    settled = Settled(int(before), digest) if before else None
    cells = _cells(steps, settled.before if settled else 0)
    marks = [_MARK.fullmatch(mark) for mark in partials.split("~")] if partials else []
    if cells is None or not all(marks):
        return None
    return StreamCursor(
        generation=int(generation),
        state=state,
        percent=min(int(percent), 100),
        run_at=int(run_at),
        steps=cells,
        settled=settled,
        partials=tuple(sorted(PartialMark(*map(int, mark.groups())) for mark in marks if mark))[-_MOST_RUNS_TOLD:],
    )


def _text(steps: Steps, first: int) -> str:
    """The steps of hops from a position on: a digit for the first attempt at each, `-` and a digit for each further one."""
    return "".join(
        token * count if count * len(token) <= len(token) + len(str(count)) + 2 else f"{token}x{count}_"
        for token, count in _counted(_tokens(steps, first))
    )


def _tokens(steps: Steps, first: int) -> Iterator[tuple[str, int]]:
    position, attempt = first - 1, 1
    for cell in sorted(cell for cell in steps if cell[0] >= first):
        if cell[0] > position:
            yield "0", cell[0] - position - 1
            position, attempt = cell[0], 1
            if cell[1] == 1:
                yield f"{steps[cell]}", 1
                continue
            yield "0", 1
        yield "-0", cell[1] - attempt - 1
        yield f"-{steps[cell]}", 1
        attempt = cell[1]


def _counted(tokens: Iterator[tuple[str, int]]) -> Iterator[tuple[str, int]]:
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


def _cells(text: str, first: int) -> dict[Cell, int] | None:
    cells: dict[Cell, int] = {}
    position, attempt, end = first - 1, 1, 0
    for token in _TOKENS.finditer(text):
        if token.start() != end:
            return None
        end = token.end()
        done, count = int(token[1][-1]), int(token[2] or 1)
        if done and len(cells) + count > _MOST_CELLS:
            return None
        further = token[1].startswith("-")
        if done:
            cells |= {
                (position, attempt + 1 + each) if further else (position + 1 + each, 1): done for each in range(count)
            }
        position, attempt = (position, attempt + count) if further else (position + count, 1)
    return cells if end == len(text) else None


def _digest(steps: Steps) -> str:
    return blake2b(_text(steps, 0).encode(), digest_size=8).hexdigest()
