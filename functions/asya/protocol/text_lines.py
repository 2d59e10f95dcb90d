"""Lines of a text that comes in pieces."""

from collections.abc import Iterable, Iterator


def lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a text without their ends; only one line is in memory at a time."""
    begun: list[bytes] = []
    for piece in pieces:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield b"".join((*begun, end))
            begun = []
        begun.append(rest)
    if last := b"".join(begun):
        yield last
