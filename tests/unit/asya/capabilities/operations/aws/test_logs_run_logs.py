"""Files of job runs, read in pages."""

import gzip
import io

from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.operations.aws.logs import LogFile, read_lines, unpacked


def read(body: bytes) -> bytes:
    return b"".join(unpacked(io.BytesIO(body)))


def test_a_file_that_is_still_being_written_is_read_as_far_as_it_goes() -> None:
    whole = gzip.compress("\n".join(map(str, range(2000))).encode())
    assert read(whole[: len(whole) // 2]).startswith(b"0\n1\n2\n")
    assert read(b"plain") == b"plain"
    assert read(b"") == b""


def test_a_file_of_several_members_is_whole_and_a_damaged_one_ends_there() -> None:
    assert read(gzip.compress(b"one\n") + gzip.compress(b"two\n")) == b"one\ntwo\n"
    assert read(gzip.compress(b"one\n") + b"junk") == b"one\n"


def test_a_large_file_comes_in_bounded_chunks() -> None:
    chunks = list(unpacked(io.BytesIO(gzip.compress(b"\0" * 5_000_000))))
    assert (sum(map(len, chunks)), max(map(len, chunks)) <= 1024 * 1024) == (5_000_000, True)


@given(
    st.lists(st.text("ab", max_size=9), max_size=20),
    st.integers(1, 7),
    st.integers(1, 30),
    st.lists(st.integers(1, 20), max_size=9),
)
def test_pages_have_every_line_once(lines: list[str], limit: int, size: int, cuts: list[int]) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    chunks: list[bytes] = []
    rest = text
    for cut in cuts:
        chunks, rest = [*chunks, rest[:cut]], rest[cut:]
    chunks.append(rest)
    found: list[tuple[int, str]] = []
    start: int | None = 0
    while start is not None:
        page = read_lines(iter([chunk for chunk in chunks if chunk]), start, limit=limit, size=size)
        assert len(page.lines) <= limit
        found, start = found + page.lines, page.next
    assert [line for _, line in found] == lines
    assert all(text[begin:].startswith(line.encode() + b"\n") for begin, line in found)


def test_the_driver_comes_first_and_executors_by_number() -> None:
    files = [LogFile("k", "v", worker, "stdout") for worker in ("10", "2", "driver")]
    assert [file.worker for file in sorted(files, key=lambda file: file.order)] == ["driver", "2", "10"]
