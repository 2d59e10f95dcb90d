"""References: the relative paths by which payloads name data, resolved against the mesh's data URI.

A payload comes from anybody who may start a task, so a reference must not be able to leave the data prefix, to
name another bucket, or to match more than the one file or folder it spells out.
"""

from collections.abc import Iterator

REFERENCE_LIMIT = 900  # bytes; S3 keys hold 1,024, and the data prefix comes first
_GLOBS = frozenset("*?[]{}")  # Hadoop would expand them: one reference would read many files
_SCHEMES = frozenset({"s3", "s3a", "s3n", "file", "http", "https", "hdfs"})


def check_reference(reference: object) -> str:
    """Return `reference` if it is one: `raw/flights.csv.gz`, or a folder such as `clean/42/flights/`.

    Raises:
        ValueError: naming the reference, what is wrong with it and what a reference looks like.
    """
    if not isinstance(reference, str):
        raise ValueError(f"a reference must be text such as 'raw/flights.csv.gz', not {type(reference).__name__}")
    problem = next(_problems(reference), None)
    if problem:
        raise ValueError(
            f"{reference[:200]!r} is no reference: {problem}. "
            "Give a path relative to the mesh's data prefix, such as 'raw/flights.csv.gz'"
        )
    return reference


def _problems(reference: str) -> Iterator[str]:
    if not reference:
        yield "it is empty"
    if not reference.isprintable():  # control characters and lone surrogates
        yield "it holds unprintable characters"
    elif len(reference.encode()) > REFERENCE_LIMIT:
        yield f"it is longer than {REFERENCE_LIMIT} bytes"
    if ":" in reference and reference.split(":", 1)[0].lower() in _SCHEMES:
        yield "it is a URI"
    if "://" in reference:
        yield "it is a URI"
    if reference.startswith("/"):
        yield "it starts with '/'"
    if "\\" in reference:
        yield "it holds a backslash; folders are separated by '/'"
    if any(part in {".", ".."} for part in reference.split("/")):
        yield "it holds '.' or '..'"
    if "//" in reference:
        yield "it holds '//'"
    if found := sorted(_GLOBS & set(reference)):
        yield f"it holds {found[0]!r}, and a reference names one file or folder, not a pattern"
