"""Refuses the paths that S3A could not open under a run's permissions, and those of objects that no local file can be.

The driver loads this module by its path. Checked are the paths of DataFrames, streams and RDDs, and those in the text of SQL.
"""

from __future__ import annotations

import contextlib
import functools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

_METHODS = (
    *("csv", "json", "load", "orc", "parquet", "save", "start", "text", "xml"),
    *("binaryFiles", "binaryRecords", "hadoopFile", "newAPIHadoopFile", "pickleFile", "sequenceFile", "textFile"),
    *("saveAsHadoopFile", "saveAsNewAPIHadoopFile", "saveAsPickleFile", "saveAsSequenceFile", "saveAsTextFile"),
    *("sql", "wholeTextFiles"),
)
# A table by its path (parquet.`s3://…`), and the clauses that have a path. Other texts in a query are data.
_IN_SQL = re.compile(
    r"`(s3a?://[^`]+)`|\b(?:location|path|directory|inpath)\b\s*=?\s*(?:'(s3a?://[^']+)'|\"(s3a?://[^\"]+)\")",
    re.IGNORECASE,
)
_WILDCARDS = frozenset("*?[{")


class RefusedPathError(PermissionError):
    """S3A would get 403 for this path."""


class UnseenObjectError(ValueError):
    """S3 has an object at this path, or below it, that no file of this machine can be."""


@contextlib.contextmanager
def refusing(
    refused: Collection[str], *classes: Any, readable: Collection[str] = (), unseen: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Refuse paths in the calls of Spark's readers and writers.

    Args:
        refused: `s3://bucket/folder` refuses the folder itself, `s3://bucket/folder/` everything below it.
        classes: `DataFrameReader` and `DataFrameWriter`.
        readable: The patterns of IAM, such as `s3://bucket/folder/*`, of all that may be read; without any, the rest is
            not refused.
        unseen: Objects that Spark does not see here, as `bucket/key`, with the reason. May change.
    """
    patterns = [_compiled(pattern) for pattern in readable]
    originals = [(each, name, getattr(each, name)) for each in classes for name in _METHODS if hasattr(each, name)]
    try:
        for each, name, method in originals if refused or patterns or unseen is not None else ():
            setattr(each, name, _checked(method, lambda path: _check(path, refused, patterns, unseen or {})))
        yield
    finally:
        for each, name, method in originals:
            setattr(each, name, method)


def _checked(method: Callable[..., Any], check: Callable[[str], None]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for path in _paths([*args, *kwargs.values()]):
            check(path)
        return method(self, *args, **kwargs)

    return call


def _check(
    path: str, refused: Collection[str], readable: Collection[re.Pattern[str]], unseen: Mapping[str, str]
) -> None:
    if is_refused(path, refused) or _is_beyond(path, readable):
        raise RefusedPathError(
            f"getFileStatus on {path}: 403 Forbidden (AccessDenied). S3A sends HEAD to the path before it reads or "
            "writes it, so the run needs s3:GetObject on this key, beside the keys below it. The key `access` of an "
            "actor grants it"
        )
    name = unseen_object(path, unseen)
    if name is not None:
        raise UnseenObjectError(
            f"{path}: Spark does not see the object {f's3://{name}'!r} on the local cloud: {unseen.get(name)}. Read and write "
            "other paths, or rename the object"
        )


def unseen_object(path: str, unseen: Collection[str]) -> str | None:
    """Return an object that Spark would not see at a path, or below it; None if there is none.

    A pattern counts as its folder, because Hadoop's patterns are not read here.
    """
    scheme, _, rest = path.partition("://")
    if not unseen or scheme not in {"s3", "s3a"}:
        return None
    start = next((index for index, character in enumerate(rest) if character in _WILDCARDS), None)
    place = rest.rstrip("/") if start is None else rest[:start].rpartition("/")[0]
    return next((name for name in list(unseen) if name == place or name.startswith(f"{place}/")), None)


def _paths(arguments: list[Any]) -> Iterator[str]:
    for argument in arguments:
        for each in argument if isinstance(argument, list | tuple) else [argument]:
            if isinstance(each, str):
                # SparkContext takes several paths with commas between them.
                yield from (
                    each.split(",") if each.startswith(("s3://", "s3a://")) else map("".join, _IN_SQL.findall(each))
                )


def is_refused(path: str, refused: Collection[str]) -> bool:
    """Return whether S3A would get 403 for a path."""
    scheme, separator, rest = path.partition("://")
    if not separator or scheme not in {"s3", "s3a"}:
        return False
    name = f"s3://{rest.rstrip('/')}"
    return any(name.startswith(each) if each.endswith("/") else name == each for each in refused)


def _is_beyond(path: str, readable: Collection[re.Pattern[str]]) -> bool:
    """Return whether no pattern names a path. S3A lists the folder of a path with wildcards, and sends no HEAD to a bucket."""
    scheme, _, rest = path.partition("://")
    name = rest.rstrip("/")
    if not readable or scheme not in {"s3", "s3a"} or "/" not in name or _WILDCARDS & set(name):
        return False
    return not any(pattern.fullmatch(name) for pattern in readable)


def _compiled(pattern: str) -> re.Pattern[str]:
    text = re.escape(pattern.removeprefix("s3://"))
    return re.compile(text.replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
