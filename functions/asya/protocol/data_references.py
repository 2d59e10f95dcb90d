"""References: the relative paths of data in payloads, resolved against the mesh's data URI.

Any caller may send a payload. So a reference must not leave the data prefix, name another bucket, or match more than
one file or folder.
"""

from collections.abc import Iterator

REFERENCE_LIMIT = 900  # bytes; S3 keys hold 1,024, and the data prefix comes first
_GLOBS = frozenset("*?[]{}")  # Hadoop expands them, so one reference would read many files
_SCHEMES = frozenset({"s3", "s3a", "s3n", "file", "http", "https", "hdfs"})


def check_reference(reference: object) -> str:
    """Return `reference` if it names a file such as `raw/flights.csv.gz`, or a folder such as `clean/42/flights/`.

    Raises:
        ValueError: the value is not a reference.
    """
    if not isinstance(reference, str):
        raise ValueError(f"a reference must be text such as 'raw/flights.csv.gz', not {type(reference).__name__}")
    problem = next(_problems(reference), None)
    if problem:
        raise ValueError(
            f"{reference[:200]!r} is not a reference: {problem}. "
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
    if globs := sorted(_GLOBS & set(reference)):
        yield f"it holds {globs[0]!r}, and a reference names one file or folder, not a pattern"
