"""The keys of objects that triggers ask for, and the filters of a bucket's notifications (`protocol §16.objects`).

S3 refuses filters that overlap: of two with one event, neither the prefixes nor the suffixes may both begin or end alike. So the
filters of a bucket may cover more keys than the triggers ask for, and the function compares each key itself.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, takewhile

MOST_FILTERS = 100
"""The notifications that a bucket may have."""
_MOST_CHARACTERS = 1024
# S3 wants other characters URL-encoded, and the documentation leaves open which.
_PLAIN = r"[A-Za-z0-9!_.'()/=-]*"
_PLAIN_START, _PLAIN_END = re.compile(_PLAIN), re.compile(f"{_PLAIN}$")


@dataclass(frozen=True, slots=True, order=True)
class KeyFilter:
    """The keys that begin with `prefix` and end with `suffix`."""

    prefix: str = ""
    suffix: str = ""

    def matches(self, key: str) -> bool:
        """Whether a key is one of these."""
        return key.startswith(self.prefix) and key.endswith(self.suffix)

    def overlaps(self, other: "KeyFilter") -> bool:
        """Whether S3 takes the two for overlapping."""
        joined = self.joined(other)
        return joined.prefix in (self.prefix, other.prefix) and joined.suffix in (self.suffix, other.suffix)

    def joined(self, other: "KeyFilter") -> "KeyFilter":
        """The narrowest filter that has the keys of both."""
        return KeyFilter(_common(self.prefix, other.prefix), _common(self.suffix[::-1], other.suffix[::-1])[::-1])

    @property
    def acceptable(self) -> "KeyFilter":
        """The narrowest filter with these keys that S3 takes as it is written."""
        start, end = _PLAIN_START.match(self.prefix), _PLAIN_END.search(self.suffix)
        return KeyFilter((start[0] if start else "")[:_MOST_CHARACTERS], (end[0] if end else "")[-_MOST_CHARACTERS:])


def notification_filters(wanted: Iterable[KeyFilter]) -> tuple[KeyFilter, ...]:
    """The filters for the notifications of one bucket: 100 at most, none overlaps another, and they have all wanted keys."""
    filters = _apart(each.acceptable for each in wanted)
    while len(filters) > MOST_FILTERS:
        closest = max(pairwise(filters), key=lambda pair: len(_common(pair[0].prefix, pair[1].prefix)))
        filters = _apart([*(each for each in filters if each not in closest), closest[0].joined(closest[1])])
    return filters


def _apart(filters: Iterable[KeyFilter]) -> tuple[KeyFilter, ...]:
    """Join those that overlap, until none does."""
    apart: list[KeyFilter] = []
    for each in sorted(set(filters)):
        joined = each
        while other := next((found for found in apart if found.overlaps(joined)), None):
            apart.remove(other)
            joined = joined.joined(other)
        apart.append(joined)
    return tuple(sorted(apart))


def _common(one: str, other: str) -> str:
    """What both begin with."""
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
