"""Lines of a text that comes in pieces."""

import pytest

from asya.protocol.text import lines


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("text", [b"", b"a", b"a\n", b"a\n\nbc\n", b"\n", b"first\nsecond"])
def test_lines_do_not_depend_on_the_pieces(text: bytes, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert list(lines(pieces)) == text.splitlines()
