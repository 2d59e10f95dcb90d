"""The data of a mesh, for jobs: resolves references in payloads to URIs for Spark.

References are relative to the data URI in the environment variable `ASYA_DATA_URI`, as in light handlers (`asya.data`). Spark reads
a path as a pattern, so `uri` escapes what it would expand: it names one file or folder. `pattern` is for many.
"""

import os
import re
from collections.abc import Iterator

from asya import data
from asya.protocol.data_references import DataFile, check_path

__all__ = ["VARIABLE", "DataFile", "list", "object_uri", "pattern", "uri"]

VARIABLE = "ASYA_DATA_URI"
# Hadoop reads these as parts of a pattern. Readers of RDDs split a path at commas; at an escaped one they fail.
_SPECIAL = re.compile(r"[\\*?\[\]{},]")


def uri(reference: str, *, write: bool = False) -> str:
    """The absolute URI of one file or folder, for reading.

    Args:
        reference: its reference.
        write: whether Spark writes there. It writes to a path as it is, and reads one as a pattern. Both are the same for names
            without `*`, `?`, `[`, `]`, `{`, `}`, commas and backslashes.

    Raises:
        ValueError: the reference is malformed, or Hadoop cannot read it.
        RuntimeError: the variable is not set, outside a mesh.
    """
    base = f"{_base()}/"
    if write:
        return base + check_path(reference)
    return base + _escaped(check_path(reference))


def pattern(reference: str) -> str:
    """The absolute URI of all files and folders that a pattern of Hadoop matches, such as `raw/*.csv`.

    Raises:
        ValueError: the pattern is malformed.
        RuntimeError: the variable is not set, outside a mesh.
    """
    return f"{_base()}/{check_path(reference)}"


def list(prefix: str, *, suffix: str = "", after: str = "") -> Iterator[DataFile]:  # noqa: A001  (as in `asya.data`)
    """List the files whose references begin with a prefix; everything is as in `asya.data.list`.

    Raises:
        ValueError: the prefix is a URI, or no reference begins with it.
        PermissionError: the actor's `access` does not cover the prefix. The first step of the iteration raises it.
        RuntimeError: the variable is not set, outside a mesh.
        ModuleNotFoundError: the run has no boto3, which lists; name it in the `requirements.txt` of the jobs.
    """
    return data.list(prefix, suffix=suffix, after=after)


def object_uri(uri: str) -> str:
    """The URI of one object as Spark reads it, such as the `uri` that a trigger gives: no character of its key is a pattern.

    Raises:
        ValueError: it is no URI of an object, or Hadoop cannot read it.
    """
    scheme, _, place = uri.partition("://")
    bucket, _, key = place.partition("/")
    if not (scheme and key):
        raise ValueError(f"{uri[:200]!r} is no URI of an object; give one such as 's3://bucket/raw/flights.csv'")
    return f"{scheme}://{bucket}/{_escaped(check_path(key))}"


def _base() -> str:
    base = os.environ.get(VARIABLE)
    if not base:
        raise RuntimeError(f"{VARIABLE} is not set. A mesh sets it; in a test, set it to file:///your/folder/")
    return base.rstrip("/")


def _escaped(reference: str) -> str:
    """A path that Hadoop reads as it is written.

    Raises:
        ValueError: Hadoop cannot read it.
    """
    problem = _problem(reference)
    if problem:
        raise ValueError(
            f"Spark cannot read {reference[:200]!r}: {problem}. "
            "Let a light actor copy it to another name, or read it with boto3 in the job"
        )
    return _SPECIAL.sub(r"\\\g<0>", reference)


def _problem(reference: str) -> str | None:
    parts = reference.rstrip("/").split("/")
    name = parts[-1]
    if (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_"):
        return f"it ignores the name {name!r}, as all that begin with '_' or '.'"
    if _SPECIAL.search(reference) and any(":" in part for part in parts):
        return "Hadoop expands its characters, and cannot escape them beside a colon"
    return None
