"""Chooses what a pause shows of the payload, and fills in its prompt (`protocol §11.pause.shows`, `.prompt`).

The text of a number has the digits of the payload: nothing here reads a number.
"""

import json
import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol.json_pointer import check_pointer
from asya.protocol.pause import ShownType, ShownValue
from asya.protocol.raw_values import value_at

DEFAULT_BYTES = 4 * 1024
"""Bytes of text if the actor does not say what to show: each write of the task's record has them."""
CHOSEN_BYTES = 16 * 1024
"""Bytes of text of all values that the actor names."""
MOST_SHOWN = 20
"""Values that an actor names at most; each has room for some words."""
POINTER_CHARACTERS = 200
"""Characters of one pointer that an actor names."""
DEPTH = 6
"""Levels of objects and lists."""
MOST_ENTRIES = 50
"""Entries of one list, and members of one object."""
TEXT_CHARACTERS = 300
"""Characters of a text within an object or a list."""
LINE_BYTES = 80
"""An object or a list of so many bytes of JSON has one line."""

# Members with longer names are only counted.
_NAME_BYTES = 100
_LINK = "(the link that answers this pause)"
_TYPES: dict[str, ShownType] = {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}
# Joiners have no shape of their own, and some scripts and emoji need them.
_JOINERS = "\u200c\u200d"
# The addresses of data: printable ASCII, and no name of a user before the host, so that a reader sees where it leads.
_PATH = r"[!#-;=?-Z_a-z~\[\]]*"
_WEB = rf"https?://[A-Za-z0-9.-]+(?::[0-9]{{1,5}})?(?:[/?#]{_PATH})?"
_ADDRESS = re.compile(rf"{_WEB}|s3://[a-z0-9][a-z0-9.-]{{1,61}}[a-z0-9]/{_PATH}")
_QUOTED_ADDRESSES = re.compile(f'"({_ADDRESS.pattern})"')

_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_list_decoder = msgspec.json.Decoder(list[Raw])
_text_decoder = msgspec.json.Decoder(str)


def shown_values(payload: Raw, pointers: Sequence[str] | None, link: str | None = None) -> tuple[ShownValue, ...]:
    """What a pause shows.

    Args:
        payload: the payload of the kept envelope.
        pointers: JSON pointers to the values; None for the whole payload.
        link: the link that answers the pause, which the payload may have; it is not shown.
    """
    if pointers is None:
        limit, shown = DEFAULT_BYTES, _members(payload, link)
    else:
        limit = CHOSEN_BYTES
        shown = [_shown(pointer, value_at(payload, pointer), link, limit) for pointer in pointers]
    # Small values are whole, and the larger ones share what is left.
    left, open_values = limit, len(shown)
    for index in sorted(range(len(shown)), key=lambda each: _size(shown[each].text)):
        shown[index] = _cut(shown[index], left // open_values)
        left -= _size(shown[index].text)
        open_values -= 1
    return tuple(shown)


def one_line(value: Raw, most: int) -> str:
    """A value as a part of a sentence: a text without its quotes, anything else as JSON."""
    text = ""
    for piece in [_plain(value)] if _is_text(value) else _compact(value, None):
        text += piece
        if len(text) > most:
            break
    text = text.replace("\n", " ").replace("\t", " ")
    return text if len(text) <= most else f"{text[:most]}…"


def text_lines(shown: Sequence[ShownValue]) -> str:
    """The values as lines of text, for a reader without a page."""
    return "\n".join(f"{each.name}: {each.text if each.text is not None else '(missing)'}" for each in shown)


def linked_parts(value: ShownValue) -> Iterator[tuple[str, bool]]:
    """The parts of the text of a value, each with whether it is the address of data (`s3://…`, `https://…`)."""
    text = value.text or ""
    if value.type == "string":
        yield text, not value.cut and _ADDRESS.fullmatch(text) is not None
        return
    end = 0
    for match in _QUOTED_ADDRESSES.finditer(text):
        yield text[end : match.start(1)], False
        yield match[1], True
        end = match.end(1)
    yield text[end:], False


def is_web_address(address: str) -> bool:
    """Whether an address of data is one that a browser opens."""
    return address.startswith(("https://", "http://"))


def _members(payload: Raw, link: str | None) -> list[ShownValue]:
    """The members of a payload, so that a large one leaves room for the others; the payload itself if it is no object."""
    text = bytes(payload).strip()
    members = _object_decoder.decode(text) if text.startswith(b"{") else None
    if not members:
        return [_shown("", payload, link, DEFAULT_BYTES)]
    named = [(f"/{name.replace('~', '~0').replace('/', '~1')}", value) for name, value in members.items()]
    chosen = [each for each in named if _size(each[0]) <= _NAME_BYTES][:MOST_ENTRIES]
    shown = [_shown(pointer, value, link, DEFAULT_BYTES) for pointer, value in chosen]
    if len(named) > len(chosen):
        more = f"… {len(named) - len(chosen):,} more members"
        shown.append(ShownValue(pointer="", text=more, type="object", cut=True))
    return shown


def _shown(pointer: str, value: Raw | None, link: str | None, limit: int) -> ShownValue:
    if value is None:
        return ShownValue(pointer=pointer)
    kind = _TYPES.get(bytes(value).lstrip()[:1].decode("latin-1"), "number")
    if kind == "string":
        text = _plain(value)
        return _cut(ShownValue(pointer=pointer, text=_LINK if text == link else text, type=kind), limit)
    pieces = _Pieces(link)
    text = ""
    for piece in pieces.of(value):
        text += piece
        if len(text) > limit:
            break
    return _cut(ShownValue(pointer=pointer, text=text, type=kind, cut=pieces.is_cut), limit)


def _cut(value: ShownValue, limit: int) -> ShownValue:
    """The value with text of so many bytes; a text of several lines ends after a whole one, so that no number is cut."""
    text = value.text
    if text is None or _size(text) <= limit:
        return value
    kept = text.encode("utf-8")[: max(0, limit - len("\n…".encode()))].decode("utf-8", "ignore")
    if value.type != "string" and "\n" in kept:
        kept = kept[: kept.rindex("\n") + 1]
    return replace(value, text=f"{kept}…", cut=True)


def _size(text: str | None) -> int:
    return len(text.encode("utf-8")) if text is not None else 0


class _Pieces:
    """Makes the text of a value piece by piece, so that a large payload is read as far as it is shown."""

    def __init__(self, link: str | None) -> None:
        self._link = link
        self.is_cut = False

    def of(self, value: Raw, indent: str = "", depth: int = 1) -> Iterator[str]:
        """The text of a value, indented below its first line."""
        text = bytes(value).strip()
        is_object = text.startswith(b"{")
        if not is_object and not text.startswith(b"["):
            yield self._scalar(value)
            return
        if len(text) <= LINE_BYTES:
            yield from _compact(value, self._link)
            return
        entries = _entries(text)
        brackets, noun = ("{}", "members") if is_object else ("[]", "entries")
        if depth > DEPTH:
            self.is_cut = True
            yield f"{brackets[0]}… {len(entries):,} {noun}{brackets[1]}"
            return
        inner = f"{indent}  "
        yield brackets[0]
        for index, (name, each) in enumerate(entries[:MOST_ENTRIES]):
            yield f"{',' if index else ''}\n{inner}{name}"
            yield from self.of(each, inner, depth + 1)
        if len(entries) > MOST_ENTRIES:
            self.is_cut = True
            yield f",\n{inner}… {len(entries) - MOST_ENTRIES:,} more {noun}"
        yield f"\n{indent}{brackets[1]}"

    def _scalar(self, value: Raw) -> str:
        if not _is_text(value):
            return bytes(value).strip().decode()
        text = _text_decoder.decode(value)
        if text == self._link:
            return _LINK
        more = len(text) - TEXT_CHARACTERS
        if more <= 0:
            return _quoted(text)
        self.is_cut = True
        return f"{_quoted(text[:TEXT_CHARACTERS])}… {more:,} more characters"


def _entries(text: bytes) -> list[tuple[str, Raw]]:
    """The members of an object with their quoted names, or the entries of a list."""
    if text.startswith(b"{"):
        return [(f"{_quoted(name)}: ", value) for name, value in _object_decoder.decode(text).items()]
    return [("", value) for value in _list_decoder.decode(text)]


def _compact(value: Raw, link: str | None) -> Iterator[str]:
    """A value on one line."""
    text = bytes(value).strip()
    if text[:1] not in (b"{", b"["):
        decoded = _text_decoder.decode(text) if _is_text(value) else None
        yield text.decode() if decoded is None else _LINK if decoded == link else _quoted(decoded)
        return
    yield chr(text[0])
    for index, (name, each) in enumerate(_entries(text)):
        yield f"{', ' if index else ''}{name}"
        yield from _compact(each, link)
    yield chr(text[-1])


def _is_text(value: Raw) -> bool:
    return bytes(value).lstrip().startswith(b'"')


def _plain(value: Raw) -> str:
    """A text without its quotes. Its lines stay; what a reader cannot see, or what moves other text, becomes an escape."""
    return _visible(_text_decoder.decode(value))


def _quoted(text: str) -> str:
    return _visible(json.dumps(text, ensure_ascii=False))


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in f"\n\t{_JOINERS}" else json.dumps(character)[1:-1]
        for character in text
    )


VALUE_CHARACTERS = 200
"""Characters of one value."""
MOST_PLACEHOLDERS = 20
MISSING = "(missing)"

# The grammar of the templates of triggers (`protocol §16.payload`), with pointers for names.
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def fill_in(prompt: str, payload: Raw) -> str:
    """The prompt with the values of a payload. It never fails: a missing value is `(missing)`, a lone brace stays."""

    def value_of(match: re.Match[str]) -> str:
        pointer = match[1]
        if pointer is None:
            return match[0][0]
        if not pointer:
            return match[0]
        try:
            value = value_at(payload, pointer)
        except ValueError:
            return match[0]
        return MISSING if value is None else one_line(value, VALUE_CHARACTERS)

    return _PLACEHOLDER.sub(value_of, prompt)


def prompt_problems(prompt: str) -> Iterator[str]:
    """What is wrong with the template of a prompt."""
    count = 0
    for match in _PLACEHOLDER.finditer(prompt):
        text, pointer = match[0], match[1]
        if text in ("{{", "}}"):
            continue
        if pointer is None:
            yield f"{text!r} stands alone; write {text * 2!r} for the character"
            continue
        count += 1
        problem = "a JSON pointer stands in it, such as {/total}" if not pointer else None
        try:
            check_pointer(pointer)
        except ValueError as error:
            problem = str(error)
        if problem is not None:
            yield f"{text!r} names no value of the payload: {problem}; write '{{{{' and '}}}}' for the characters"
    if count > MOST_PLACEHOLDERS:
        yield f"has {count} values of the payload; {MOST_PLACEHOLDERS} at most"
