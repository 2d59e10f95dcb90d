"""JSON pointers (RFC 6901). Standard library only, because jobs use them too."""

import re

MOST_PARTS = 100
"""A part is a level of a payload. JSON of the mesh has about a thousand levels, and the work at a pointer grows with its square."""
_PARTS = re.compile(r"([^~]|~[01])*")


def check_pointer(pointer: str) -> str:
    """Return `pointer` if it is a JSON pointer: empty, or `/` before each part, with `~0` and `~1` for `~` and `/`.

    Raises:
        ValueError: the text is not a JSON pointer, or has more than `MOST_PARTS` parts.
    """
    if (count := pointer.count("/")) > MOST_PARTS:
        raise ValueError(f"a JSON pointer has {MOST_PARTS} parts at most; {pointer[:40] + '…'!r} has {count}")
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is not a JSON pointer: it starts with '/'")
    if not _PARTS.fullmatch(pointer):
        raise ValueError(f"{pointer!r} is not a JSON pointer: write ~0 for '~' and ~1 for '/' within a part")
    return pointer


def parts(pointer: str) -> tuple[str, ...]:
    """The unescaped keys of a pointer. The empty pointer has no keys and stands for the whole document.

    Raises:
        ValueError: the text is not a JSON pointer.
    """
    if not check_pointer(pointer):
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))
