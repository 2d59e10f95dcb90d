"""Text as editors, shells and other programs write it."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.text import as_utf8, decode_text

MARKED = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
# Without the characters that are themselves a mark, or make the mark of UTF-16 one of UTF-32.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff\0"))


@pytest.mark.parametrize("encoding", MARKED)
@given(text=TEXTS)
def test_marked_text_is_the_same_text(encoding: str, text: str) -> None:
    content = MARKED[encoding] + text.encode(encoding)
    assert decode_text(content) == text
    assert as_utf8(content) == text.encode()


@given(text=TEXTS)
def test_text_without_a_mark_is_utf_8(text: str) -> None:
    assert decode_text(text.encode()) == text
    assert as_utf8(text.encode()) == text.encode()


@given(content=st.binary())
def test_what_is_not_text_stays_as_it_is(content: bytes) -> None:
    for candidate in (content, codecs.BOM_UTF16_LE + content, codecs.BOM_UTF8 + content):
        try:
            text = decode_text(candidate)
        except UnicodeDecodeError:
            assert as_utf8(candidate) == candidate
        else:
            # Halves of surrogate pairs never come out of a decoder.
            assert as_utf8(candidate) == text.encode()
