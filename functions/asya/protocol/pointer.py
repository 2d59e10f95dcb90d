"""JSON pointers (RFC 6901): where in a payload something goes. Standard library only, because jobs check theirs too."""

import re

_PARTS = re.compile(r"([^~]|~[01])*")


def check_pointer(pointer: str) -> str:
    """Return `pointer` if it is a JSON pointer: empty, or `/` before each part, with `~0` and `~1` for `~` and `/`.

    Raises:
        ValueError: saying what is wrong with it.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is no JSON pointer: it starts with '/'")
    if not _PARTS.fullmatch(pointer):
        raise ValueError(f"{pointer!r} is no JSON pointer: write ~0 for '~' and ~1 for '/' within a part")
    return pointer


def parts(pointer: str) -> tuple[str, ...]:
    """The keys that a pointer goes through; none for the empty one, which is the whole document.

    Raises:
        ValueError: if it is no JSON pointer.
    """
    if not check_pointer(pointer):
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))
