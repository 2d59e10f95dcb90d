"""Results that a job wrote wrongly: the readable ones count, all others charge their members (protocol §10)."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from asya.heavy.results import UnreadableFrameError, ordered_parts, part_results, read_lines
from asya.protocol.job_runs import ResultFrame, ResultPart

GOOD = [b'{"index":3,"end":"done","frames":1}', b'{"payload":1}', b'{"index":4,"end":"done"}']


def part(first: int = 3, last: int = 5, file: str = "part-000000.jsonl") -> ResultPart:
    return ResultPart(file=file, first=first, last=last, lines=3, size=1000)


def results(lines: Iterable[bytes]) -> list[tuple[Any, ...]]:
    """Each result: its member, its line, its end and its frames, or its problem."""
    seen = []
    for result in part_results(part(), iter(lines)):
        end = result.head.end if result.head else result.problem
        seen.append((result.index, result.line, end, len(list(result.frames))))
    return seen


@pytest.mark.rule("10.death.unreadable")
def test_readable_results_count() -> None:
    lines = [*GOOD, b'{"index":5,"end":"failed","frames":1}', b"{}"]
    assert results(lines) == [(3, 0, "done", 1), (4, 2, "done", 0), (5, 3, "failed", 1)]


@pytest.mark.rule("10.death.unreadable")
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "part-000000.jsonl, line 3: "),
        (b"\xff", "part-000000.jsonl, line 3: "),
        (b"not JSON", "part-000000.jsonl, line 3: "),
        (b'{"index":4,"end":"done","error":{"type":"' + b"\xff" + b'"}}', "part-000000.jsonl, line 3: "),
        (b'{"index":4,"end":"done","more":' + b"[" * 5000 + b"]" * 5000 + b"}", "part-000000.jsonl, line 3: "),
        (b'{"index":4,"end":"who knows"}', "part-000000.jsonl, line 3: Invalid enum value"),
        (b'{"index":9,"end":"done"}', "the result of member 4 is missing"),
        (b'{"index":4,"end":"done","frames":-1}', "a result cannot have -1 frames"),
        (b'{"index":4,"end":"done","frames":1000000000000}', "a result cannot have 1000000000000 frames"),
    ],
)
def test_an_unreadable_head_makes_the_rest_of_the_part_unreadable(line: bytes, problem: str) -> None:
    first, second, third = results([*GOOD[:2], line, b'{"index":5,"end":"done"}'])
    assert first == (3, 0, "done", 1)
    assert (second[0], second[1], third[0], third[1]) == (4, 2, 5, 3)
    assert problem in second[2] == third[2]


@pytest.mark.rule("10.death.unreadable")
@pytest.mark.parametrize("lines", [[b"[]"], [b"\xff\xfe"], [b'{"payload":' + b"[" * 5000 + b"]" * 5000 + b"}"], []])
def test_an_unreadable_frame_affects_its_own_result_only(lines: list[bytes]) -> None:
    head = b'{"index":3,"end":"done","frames":2}'
    walk = part_results(part(), iter([head, b'{"payload":1}', *lines, *GOOD[2:]][: 3 if lines else 2]))
    frames = next(walk).frames
    assert next(frames) == ResultFrame(payload=msgspec.Raw(b"1"))
    with pytest.raises(UnreadableFrameError, match=r"line 3|frames are missing"):
        next(frames)


@pytest.mark.rule("10.death.unreadable")
def test_a_result_whose_frames_nobody_reads_is_skipped() -> None:
    walk = part_results(part(3, 4), iter(GOOD))
    assert [(result.index, result.line) for result in walk] == [(3, 0), (4, 2)]


@pytest.mark.rule("10.death.unreadable")
@pytest.mark.parametrize(
    "wrong",
    [
        part(0, 1, "../part-000000.jsonl"),
        part(0, 1, "commit.json"),
        part(4, 3),
        part(-1, 3),
        part(2, 10**18),
        part(1, 4),
    ],
)
def test_parts_count_up_to_the_first_wrong_one(wrong: ResultPart) -> None:
    good = part(0, 1)
    assert ordered_parts([good, wrong, part(5, 6, "part-000001.jsonl")], 7) == (good,)


@pytest.mark.rule("10.death.unreadable")
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100])
def test_lines_are_the_same_in_chunks_of_any_size(size: int) -> None:
    content = b"first\n\nthird, longer\nfourth"
    chunks = [content[start : start + size] for start in range(0, len(content), size)]
    assert list(read_lines(chunks)) == [b"first", b"", b"third, longer", b"fourth"]
    assert list(read_lines([*chunks, b"\n"])) == [b"first", b"", b"third, longer", b"fourth"]


@pytest.mark.rule("10.death.unreadable")
def test_a_line_that_no_memory_holds_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asya.heavy.results.LINE_LIMIT", 10)
    chunks = [b"short\n0123", b"4567", b"89abcdef", b"ghi\nnext\n", b"0123456789", b"!"]
    assert list(read_lines(chunks)) == [b"short", b"", b"next", b""]
