"""Finds and inserts values in JSON text by pointers; all other bytes stay as they are (`protocol §9`)."""

import re

import msgspec
from msgspec import Raw

from asya.protocol.json_pointer import parts

_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")
_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_list_decoder = msgspec.json.Decoder(list[Raw])


def value_at(document: Raw, pointer: str) -> Raw | None:
    """The value at a JSON pointer, with the bytes that it has in the document; None if the document has no such value.

    Raises:
        ValueError: the text is not a JSON pointer.
    """
    value = document
    for key in parts(pointer):
        text = bytes(value).strip()
        try:
            if text.startswith(b"{"):
                value = _object_decoder.decode(text)[key]
            elif text.startswith(b"[") and _INDEX.fullmatch(key):
                value = _list_decoder.decode(text)[int(key)]
            else:
                return None
        except (KeyError, IndexError, msgspec.MsgspecError, RecursionError):
            return None
    return value


_ENTRY_INDEX = re.compile(r"0|[1-9][0-9]*")


_EMPTY_OBJECT = Raw(b"{}")


def insert(document: Raw, pointer: str, value: Raw) -> Raw:
    """The document with `value` at the JSON pointer.

    Missing parents become objects. The empty pointer replaces the whole document.

    Raises:
        ValueError: the pointer passes through a value that is neither an object nor an existing entry of a list.
    """
    try:
        return _inserted(document, parts(pointer), value, pointer)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{pointer}: the payload cannot be read: {error}") from None


def _inserted(document: Raw, keys: tuple[str, ...], value: Raw, pointer: str) -> Raw:
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    text = bytes(document).strip()
    if text.startswith(b"{"):
        members = _object_decoder.decode(text)
        members[key] = _inserted(members.get(key, _EMPTY_OBJECT), rest, value, pointer)
        return Raw(msgspec.json.encode(members))
    if text.startswith(b"["):
        entries = _list_decoder.decode(text)
        if not _ENTRY_INDEX.fullmatch(key) or int(key) >= len(entries):
            raise ValueError(f"{pointer}: a list of {len(entries)} entries has no entry {key!r}")
        entries[int(key)] = _inserted(entries[int(key)], rest, value, pointer)
        return Raw(msgspec.json.encode(entries))
    if text == b"null":
        return _inserted(_EMPTY_OBJECT, keys, value, pointer)
    raise ValueError(f"{pointer}: {key!r} cannot be put into a {_kind(text)}")


def _kind(text: bytes) -> str:
    if text.startswith(b'"'):
        return "text"
    return "boolean" if text in (b"true", b"false") else "number"
