"""Reads the results of a part, in which any line may be wrong, and counts outcomes of a run (`protocol §10`).

A result that cannot be read charges its own member. All results after an unreadable head are unreadable, because nothing says
where the next one begins.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import msgspec
from msgspec.structs import replace

from asya.function.hop import Delivery, Diversion
from asya.protocol.job_runs import ResultFrame, ResultHead, ResultPart

Outcome = Literal["succeeded", "failed", "retried", "again", "canceled"]


class RunOutcomes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The envelopes of a run by outcome.

    Attributes:
        succeeded: whose call gave its result.
        failed: whose call failed, or that the run is charged with, and that end or go to another actor.
        retried: the same, but their policy lets them run again.
        again: without a result, to run again without a charge.
        canceled: whose task was canceled meanwhile.
    """

    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    again: int = 0
    canceled: int = 0

    @property
    def total(self) -> int:
        """The number of envelopes."""
        return self.succeeded + self.failed + self.retried + self.again + self.canceled

    def plus(self, outcome: Outcome) -> "RunOutcomes":
        """The counts with one more envelope."""
        return replace(self, **{outcome: getattr(self, outcome) + 1})

    @property
    def word(self) -> str:
        """The run in one word or two: that of all envelopes, else what went wrong with a part of them."""
        found = [name for name in self.__struct_fields__ if getattr(self, name)]
        if len(found) == 1:
            return {"again": "runs again"}.get(found[0], found[0])
        if self.failed or self.retried:
            return "partly failed" if self.failed else "partly retried"
        return "partly canceled" if self.canceled else "partly again"

    @property
    def text(self) -> str:
        """The counts that are not 0: `19 succeeded, 1 failed`."""
        counts = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return ", ".join(f"{count} {name}" for name, count in counts if count)


def outcome_of(head: ResultHead, first: Delivery | None) -> Outcome:
    """The outcome of an envelope with a result.

    Args:
        head: the head of the result.
        first: its first delivery; None if that left before.
    """
    if first is not None and first.kind == "retry":
        return "retried"
    is_refused = first is not None and first.kind == "sump"
    return "succeeded" if head.end == "done" and not is_refused else "failed"


def outcome_of_charge(delivery: Delivery) -> Outcome:
    """The outcome of an envelope that its run is charged with."""
    return "retried" if delivery.kind == "retry" else "failed"


def outcome_of_diversion(diversion: Diversion) -> Outcome:
    """The outcome of an envelope that ended while its run was at work: past its deadline, or canceled."""
    return "failed" if diversion.why == "SlaExpired" else "canceled"


FRAME_LIMIT = 2**31  # far above what a part can hold

LINE_LIMIT = 64 * 1024 * 1024  # bytes; a longer line would use up the memory of the completion
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""What a decoder raises for bytes that a job wrote: no JSON, no UTF-8, other fields, or lists in lists in lists."""

_FILE = re.compile(r"part-\d{6,}\.jsonl")

_head_decoder = msgspec.json.Decoder(ResultHead)
_frame_decoder = msgspec.json.Decoder(ResultFrame)


class UnreadableFrameError(ValueError):
    """A line of a result is not the frame that its head announces."""


@dataclass(frozen=True, slots=True)
class PartResult:
    """The result of one member.

    Attributes:
        index: the index of the member in the manifest.
        line: the line where the result begins. Each unreadable result counts as one line.
        head: None if the result cannot be read.
        frames: the frames, decoded one by one; an unreadable one raises `UnreadableFrameError`.
        problem: why the result cannot be read.
    """

    index: int
    line: int
    head: ResultHead | None
    frames: Iterator[ResultFrame] = field(default_factory=lambda: iter(()))
    problem: str = ""


def ordered_parts(parts: Sequence[ResultPart], members: int) -> tuple[ResultPart, ...]:
    """The parts up to the first that names no file of a part, no members of the run, or members of an earlier part."""
    taken = bytearray(members)
    for count, part in enumerate(parts):
        span = slice(part.first, part.last + 1)
        if not (_FILE.fullmatch(part.file) and 0 <= part.first <= part.last < members and not any(taken[span])):
            return tuple(parts[:count])
        taken[span] = b"\1" * (part.last + 1 - part.first)
    return tuple(parts)


def part_results(part: ResultPart, lines: Iterator[bytes]) -> Iterator[PartResult]:
    """The results of the members of a part, in order; each one's frames are read before the next result."""
    line = 0
    for index in range(part.first, part.last + 1):
        try:
            head = _head(next(lines, b""), index)
        except UNREADABLE as error:
            problem = f"{part.file}, line {line + 1}: {error}"
            yield from unreadable_results(part, problem, first=index, line=line)
            return
        rest = islice(lines, head.frames)
        yield PartResult(index, line, head, _frames(rest, part, line, head.frames))
        for _ in rest:
            pass  # a diverted result leaves frames unread
        line += 1 + head.frames


def unreadable_results(part: ResultPart, problem: str, *, first: int, line: int = 0) -> Iterator[PartResult]:
    """The results of the members of a part from `first` on, all unreadable."""
    for index in range(first, part.last + 1):
        yield PartResult(index, line + index - first, None, problem=problem)


def _head(text: bytes, index: int) -> ResultHead:
    head = _head_decoder.decode(text)
    if head.index != index:
        raise ValueError(f"the result of member {index} is missing")
    if not 0 <= head.frames <= FRAME_LIMIT:
        raise ValueError(f"a result cannot have {head.frames} frames")
    return head


def _frames(lines: Iterator[bytes], part: ResultPart, line: int, count: int) -> Iterator[ResultFrame]:
    number = 0
    for number, text in enumerate(lines, start=1):
        try:
            frame = _frame_decoder.decode(text)
        except UNREADABLE as error:
            raise UnreadableFrameError(f"{part.file}, line {line + 1 + number}: {error}") from None
        yield frame
    if number < count:
        raise UnreadableFrameError(f"{part.file}, line {line + 1 + number}: {count - number} frames are missing")


def read_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a part, without their ends; a line above `LINE_LIMIT` is empty, so it is unreadable."""
    pending: list[bytes] = []
    size = 0
    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield _joined([*pending, end], size + len(end))
            pending, size = [], 0
        size += len(rest)
        pending = [*pending, rest] if size <= LINE_LIMIT else []
    if size:
        yield _joined(pending, size)


def _joined(pieces: Sequence[bytes], size: int) -> bytes:
    return b"".join(pieces) if size <= LINE_LIMIT else b""
