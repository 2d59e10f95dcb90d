"""Decodes text as other programs write it, splits it into lines, and escapes it for a terminal. Standard library only.

Windows programs begin UTF-8 with a byte order mark, and PowerShell redirects output as UTF-16. The mark is no part of the text.
"""

import codecs
import re
from collections.abc import Iterable, Iterator

RESULT_LINE_LIMIT = 64 * 1024 * 1024
"""The most bytes that a frame in the results of a job has (`protocol §10.result-size`)."""

# That of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode_text(content: bytes) -> str:
    """Decode text in UTF-8, or in the encoding of its byte order mark, without that mark.

    Raises:
        UnicodeDecodeError: the content is not text in this encoding.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding)
    return content.decode("utf-8")


def as_utf8(content: bytes) -> bytes:
    """Return text as UTF-8 without a byte order mark; what has no mark, or is not text, is returned unchanged."""
    if not content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        return content
    try:
        return decode_text(content).encode("utf-8")
    except UnicodeError:
        return content


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


# Each character of the categories Cc (without tab and newline), Cf, Cs, Zl and Zp: a terminal obeys it or does not show it, so two
# texts would look alike, or one like another.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)


def visible(text: str) -> str:
    r"""Replace each hidden character by its escape, such as `\x1b` or `\u200b`. Newlines and tabs stay."""
    return HIDDEN.sub(lambda match: _escape(match[0]), text)


def one_line(text: str) -> str:
    r"""Make a text visible that has one line, such as an id: newlines and tabs become `\n` and `\t`."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
