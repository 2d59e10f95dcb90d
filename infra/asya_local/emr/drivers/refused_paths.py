"""Refuses the paths that S3A could not open under a run's permissions. Spark reads local files here, which have none.

The driver loads this module by its path. Checked are the paths of `spark.read` and `DataFrame.write`.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

_METHODS = ("csv", "json", "load", "orc", "parquet", "save", "text", "xml")


class RefusedPathError(PermissionError):
    """S3A would get 403 for this path."""


@contextlib.contextmanager
def refusing(refused: Collection[str], *classes: Any) -> Iterator[None]:
    """Refuse paths in the calls of Spark's readers and writers.

    Args:
        refused: `s3://bucket/folder` refuses the folder itself, `s3://bucket/folder/` everything below it.
        classes: `DataFrameReader` and `DataFrameWriter`.
    """
    originals = [(each, name, getattr(each, name)) for each in classes for name in _METHODS if hasattr(each, name)]
    try:
        for each, name, method in originals if refused else ():
            setattr(each, name, _checked(method, refused))
        yield
    finally:
        for each, name, method in originals:
            setattr(each, name, method)


def _checked(method: Callable[..., Any], refused: Collection[str]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for path in _paths([*args, kwargs.get("path"), kwargs.get("paths")]):
            if is_refused(path, refused):
                raise RefusedPathError(
                    f"getFileStatus on {path}: 403 Forbidden (AccessDenied). S3A sends HEAD to the path before it reads or "
                    "writes it, so the run needs s3:GetObject on this key, beside the keys below it"
                )
        return method(self, *args, **kwargs)

    return call


def _paths(arguments: list[Any]) -> Iterator[str]:
    for argument in arguments:
        for each in argument if isinstance(argument, list | tuple) else [argument]:
            if isinstance(each, str):
                yield each


def is_refused(path: str, refused: Collection[str]) -> bool:
    """Return whether S3A would get 403 for a path."""
    scheme, separator, rest = path.partition("://")
    if not separator or scheme not in {"s3", "s3a"}:
        return False
    name = f"s3://{rest.rstrip('/')}"
    return any(name.startswith(each) if each.endswith("/") else name == each for each in refused)
