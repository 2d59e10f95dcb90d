"""Reads IAM policy documents, and derives the objects and folders that a job may read from them. Pure."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


def statements(document: str | Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the statements of a policy document."""
    parsed = json.loads(document) if isinstance(document, str) else document
    value = parsed.get("Statement", [])
    return [dict(statement) for statement in (value if isinstance(value, list) else [value])]


def as_list(value: str | Sequence[str] | None) -> list[str]:
    """Return a policy element, one string or several, as a list."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def matches(pattern: str, key: str) -> bool:
    """Return whether a pattern of IAM names a key: `*` and `?` are wildcards, brackets are characters."""
    return _compiled(pattern).fullmatch(key) is not None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


_OBJECT = re.compile(r"arn:[^:]*:s3:::([^/]+)/(.*)", re.DOTALL)
_ANYTHING = ("*", "*")
_READ = "s3:getobject"
_WRITE = "s3:putobject"


@dataclass(frozen=True, order=True)
class ReadablePrefix:
    """The objects whose bucket and key match two patterns."""

    bucket: str
    pattern: str

    @property
    def key_prefix(self) -> str:
        """The key pattern up to the first wildcard."""
        return re.split(r"[*?]", self.pattern, maxsplit=1)[0]

    @property
    def is_single_object(self) -> bool:
        """Whether the pattern has no wildcard."""
        return self.key_prefix == self.pattern

    @property
    def folder(self) -> str | None:
        """The key `clean` of the pattern `clean/*`; None if the pattern matches anything else than one folder."""
        folder = self.pattern.removesuffix("/*")
        return folder if folder and folder + "/" == self.key_prefix else None

    def covers(self, other: ReadablePrefix) -> bool:
        """Return whether this prefix includes all objects of the other."""
        return fnmatchcase(other.bucket, self.bucket) and (
            self.pattern == other.pattern
            or (self.pattern == self.key_prefix + "*" and other.key_prefix.startswith(self.key_prefix))
        )


def readable_prefixes(documents: Iterable[str]) -> list[ReadablePrefix]:
    """Return the prefixes that the policies allow to read, without those that others cover."""
    allowed = {prefix for document in documents for prefix in _allowed(document, _READ)}
    return sorted(
        prefix for prefix in allowed if not any(other != prefix and other.covers(prefix) for other in allowed)
    )


def folders(documents: Iterable[str]) -> list[ReadablePrefix]:
    """Return the patterns of whole folders that the policies allow to read or to write."""
    allowed = {prefix for document in documents for action in (_READ, _WRITE) for prefix in _allowed(document, action)}
    return sorted(prefix for prefix in allowed if prefix.folder)


def _allowed(document: str, needed: str) -> Iterator[ReadablePrefix]:
    for statement in statements(document):
        actions = as_list(statement.get("Action"))
        allows = any(fnmatchcase(needed, action.lower()) for action in actions) or "NotAction" in statement
        if statement.get("Effect") != "Allow" or not allows:
            continue
        for resource in as_list(statement.get("Resource")) or ["*"]:
            match = _OBJECT.fullmatch(resource)
            if match:
                yield ReadablePrefix(match[1], match[2])
            elif resource in {"*", "arn:aws:s3:::*"}:
                yield ReadablePrefix(*_ANYTHING)


def expand_buckets(
    prefixes: Iterable[ReadablePrefix], buckets: Iterable[str], code_buckets: Iterable[str]
) -> list[ReadablePrefix]:
    """Replace bucket patterns by the existing buckets, without the code buckets."""
    code_patterns = tuple(code_buckets)
    data = [bucket for bucket in buckets if not any(fnmatchcase(bucket, pattern) for pattern in code_patterns)]
    return sorted(
        {
            ReadablePrefix(bucket, prefix.pattern)
            for prefix in prefixes
            for bucket in data
            if fnmatchcase(bucket, prefix.bucket)
        }
    )
