"""Putting a value into a payload by JSON pointer (RFC 6901); what is not on the way to it keeps its bytes."""

import re

import msgspec
from msgspec import Raw

_PART = re.compile(r"([^~]|~[01])*")
_INDEX = re.compile(r"0|[1-9][0-9]*")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_list_decoder = msgspec.json.Decoder(list[Raw])
_EMPTY_OBJECT = Raw(b"{}")


def check_pointer(pointer: str) -> str:
    """Return `pointer` if it is a JSON pointer: empty, or `/` before each part, with `~0` and `~1` for `~` and `/`.

    Raises:
        ValueError: saying what is wrong with it.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is no JSON pointer: it starts with '/'")
    if not _PART.fullmatch(pointer):
        raise ValueError(f"{pointer!r} is no JSON pointer: write ~0 for '~' and ~1 for '/' within a part")
    return pointer


def insert(document: Raw, pointer: str, value: Raw) -> Raw:
    """The document with `value` at `pointer`; missing parents are created as objects, the empty pointer replaces all.

    Raises:
        ValueError: if the pointer runs through something that is neither an object nor an existing place in a list.
    """
    if check_pointer(pointer) == "":
        return value
    keys = [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]
    try:
        return _inserted(document, keys, value, pointer)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{pointer}: the payload cannot be read: {error}") from None


def _inserted(document: Raw, keys: list[str], value: Raw, pointer: str) -> Raw:
    if not keys:
        return value
    key, below = keys[0], keys[1:]
    text = bytes(document).strip()
    if text.startswith(b"{"):
        members = _object_decoder.decode(text)
        members[key] = _inserted(members.get(key, _EMPTY_OBJECT), below, value, pointer)
        return Raw(msgspec.json.encode(members))
    if text.startswith(b"["):
        entries = _list_decoder.decode(text)
        if not _INDEX.fullmatch(key) or int(key) >= len(entries):
            raise ValueError(f"{pointer}: a list of {len(entries)} entries has no place {key!r}")
        entries[int(key)] = _inserted(entries[int(key)], below, value, pointer)
        return Raw(msgspec.json.encode(entries))
    if text == b"null":
        return _inserted(_EMPTY_OBJECT, keys, value, pointer)
    raise ValueError(f"{pointer}: {key!r} cannot be put into a {_kind(text)}")


def _kind(text: bytes) -> str:
    if text.startswith(b'"'):
        return "text"
    return "boolean" if text in (b"true", b"false") else "number"
