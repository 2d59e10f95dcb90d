"""Finds values in JSON text by pointers, and leaves their bytes as they are."""

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
