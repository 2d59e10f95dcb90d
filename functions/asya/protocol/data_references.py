"""References: the names of data in payloads, resolved against the mesh's data URI (`protocol §1.references`).

A reference is any key that S3 allows below the prefix of the data, so that a trigger may name every object. It names one object
or one folder: no character of it is a pattern, and no part of it leads elsewhere, because keys of S3 are no paths.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

KEY_LIMIT = 1024
"""Bytes of a key of S3, the prefix of the data included."""
_SCHEMES = frozenset({"s3", "s3a", "s3n", "file", "http", "https", "hdfs"})
_FOLDER_ENDS = ("/", "_$folder$")
# IAM reads these as parts of a pattern or of a variable.
_PLAIN = re.compile(r"[^*?$]*")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file in the data of a mesh, as a list shows it.

    Attributes:
        reference: Its name in payloads.
        size: Its bytes.
        changed_at: When it was written, in UTC.
    """

    reference: str
    size: int
    changed_at: datetime


def check_reference(reference: object) -> str:
    """Return `reference` if it names data, such as `raw/flights.csv.gz` or the folder `clean/42/flights/`.

    Raises:
        ValueError: the value is not a reference.
    """
    if not isinstance(reference, str):
        raise ValueError(f"a reference must be text such as 'raw/flights.csv.gz', not {type(reference).__name__}")
    return _checked(reference, _problems(reference))


def check_new_reference(reference: object) -> str:
    """Return `reference` if a program may write data of this name; it is not what its author may take for something else.

    Raises:
        ValueError: the value is not a reference, or it is a URI or the name of a folder.
    """
    known = check_reference(reference)
    if known.endswith("/"):
        raise ValueError(f"{known!r} names a folder; give the reference of a file")
    return _checked(known, _problems_of_new(known))


def check_path(reference: object) -> str:
    """Return `reference` if programs that read keys as paths find this data, and no other.

    Raises:
        ValueError: the value is not a reference, or a path cannot express it.
    """
    known = check_reference(reference)
    return _checked(known, _problems_of_path(known))


def check_prefix(prefix: object) -> str:
    """Return `prefix` if references can begin with it, such as `raw/` or `raw/2026-`; every reference begins with an empty one.

    Raises:
        ValueError: the value is no text, no reference begins with it, or it is a URI.
    """
    problem: str | None = f"it is {type(prefix).__name__}, not text"
    if isinstance(prefix, str):
        found = (*_problems(prefix), *_problems_of_new(prefix)) if prefix else ()
        problem = next(iter(found), None)
        if problem is None:
            return prefix
    raise ValueError(
        f"{str(prefix)[:200]!r} is not a prefix of references: {problem}. "
        "Give the beginning of names in the mesh's data, such as 'raw/'"
    )


def pattern_of_prefix(prefix: str) -> str:
    """A pattern of `access` in the mesh file that grants the list of a prefix, and as little else as it can say."""
    found = _PLAIN.match(prefix)
    plain = found[0] if found else ""
    return "*" if plain.startswith("/") or ".." in plain.split("/") else f"{plain}*"


def is_folder_marker(key: str, size: int) -> bool:
    """Whether it is an empty object that consoles and Hadoop write for a folder."""
    return size == 0 and key.endswith(_FOLDER_ENDS)


def is_below_bucket(key: str) -> bool:
    """Whether S3 takes a key: read from the left, no `..` leads above the bucket."""
    depth = 0
    for part in key.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return False
    return True


def hint(reference: str) -> str:
    """What the author of a reference that names nothing may have meant; empty, or in parentheses after a blank."""
    if next(_problems_of_path(reference), None) is not None:
        return " (a reference is relative to the data of the mesh, such as 'raw/flights.csv.gz')"
    if reference.endswith("/"):
        return " (it names a folder; give the reference of a file)"
    return " (it names one file, no pattern)" if set(reference) & set("*?") else ""


def _checked(reference: str, problems: Iterator[str]) -> str:
    problem = next(problems, None)
    if problem:
        raise ValueError(
            f"{reference[:200]!r} is not a reference: {problem}. "
            "Give a path relative to the mesh's data prefix, such as 'raw/flights.csv.gz'"
        )
    return reference


def _problems(reference: str) -> Iterator[str]:
    if not reference:
        yield "it is empty"
    try:
        size = len(reference.encode())
    except UnicodeEncodeError:
        yield "it holds half a character"
    else:
        if size > KEY_LIMIT:
            yield f"it is longer than {KEY_LIMIT} bytes"


def _problems_of_new(reference: str) -> Iterator[str]:
    if "://" in reference or (":" in reference and reference.split(":", 1)[0].lower() in _SCHEMES):
        yield "it is a URI"


def _problems_of_path(reference: str) -> Iterator[str]:
    yield from _problems_of_new(reference)
    parts = reference.split("/")
    if reference.startswith("/"):
        yield "it starts with '/', so no path leads to it"
    if any(part in {".", ".."} for part in parts):
        yield "it holds '.' or '..', which lead elsewhere in a path"
    if "//" in reference:
        yield "it holds '//', which is '/' in a path"
