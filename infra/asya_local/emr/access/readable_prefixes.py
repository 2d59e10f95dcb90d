"""Which objects a job may read, from the policies it runs under: what is mirrored before it starts. Pure.

This only says where to look. Every listing and every read is made with the run's own credentials, so it is IAM, not
this module, that decides what the job sees.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from asya_local.emr.access.policies import as_list, statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OBJECT = re.compile(r"arn:[^:]*:s3:::([^/]+)/(.*)", re.DOTALL)
_ANYTHING = ("*", "*")


@dataclass(frozen=True, order=True)
class ReadablePrefix:
    """Objects of one bucket, or of several by pattern, whose keys match a pattern."""

    bucket: str
    pattern: str

    @property
    def prefix(self) -> str:
        """The part of the keys before the first wildcard."""
        return re.split(r"[*?]", self.pattern, maxsplit=1)[0]

    @property
    def is_single_object(self) -> bool:
        """Whether it is one object."""
        return self.prefix == self.pattern

    def covers(self, other: ReadablePrefix) -> bool:
        """Whether everything that the other names is among this one's objects."""
        return fnmatchcase(other.bucket, self.bucket) and (
            self.pattern == other.pattern
            or (self.pattern == self.prefix + "*" and other.prefix.startswith(self.prefix))
        )


def readable_prefixes(documents: Iterable[str]) -> list[ReadablePrefix]:
    """What the policies' Allow statements let a job read, the ones that others cover left out."""
    found = {prefix for document in documents for prefix in _allowed(document)}
    return sorted(prefix for prefix in found if not any(other != prefix and other.covers(prefix) for other in found))


def _allowed(document: str) -> Iterator[ReadablePrefix]:
    for statement in statements(document):
        actions = as_list(statement.get("Action"))
        reads = any(fnmatchcase("s3:getobject", action.lower()) for action in actions) or "NotAction" in statement
        if statement.get("Effect") != "Allow" or not reads:
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
    """The prefixes with bucket patterns replaced by the buckets there are, those of code left out."""
    excluded = tuple(code_buckets)
    data = [bucket for bucket in buckets if not any(fnmatchcase(bucket, pattern) for pattern in excluded)]
    return sorted(
        {
            ReadablePrefix(bucket, prefix.pattern)
            for prefix in prefixes
            for bucket in data
            if fnmatchcase(bucket, prefix.bucket)
        }
    )
