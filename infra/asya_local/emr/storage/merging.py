"""Decides what a mirror takes over from S3 while its job runs. Pure.

The job writes files at the same time. What it wrote or deleted since the latest push goes to S3 next, so S3 does not replace it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asya_local.emr.access.readable_prefixes import ReadablePrefix
    from asya_local.emr.storage.ordering import Snapshot

Versions = Mapping[str, str]
"""Objects of S3: `bucket/key` to the ETag of the object."""


@dataclass(frozen=True)
class Listing:
    """The objects that S3 has now.

    Attributes:
        objects: The objects and their ETags.
        prefixes: Those that the listing has all objects of. S3 may refuse others.
    """

    objects: Versions
    prefixes: tuple[ReadablePrefix, ...]

    def covers(self, name: str) -> bool:
        """Return whether an object would be in the listing if it existed."""
        return covers(self.prefixes, name)


@dataclass(frozen=True)
class PullChanges:
    """The changes that bring a mirror to the state of S3."""

    fetched: tuple[str, ...]
    removed: tuple[str, ...]


def covers(prefixes: tuple[ReadablePrefix, ...], name: str) -> bool:
    """Return whether one of the prefixes includes an object."""
    bucket, _, key = name.partition("/")
    return any(
        prefix.bucket == bucket and (prefix.pattern == key or fnmatchcase(key, prefix.pattern)) for prefix in prefixes
    )


def merge(synced: Snapshot, current: Snapshot, known: Versions, listing: Listing) -> PullChanges:
    """Return the objects to fetch and the files to remove.

    Args:
        synced: The files as S3 had them at the latest push or pull.
        current: The files as they are.
        known: The objects as the mirror last saw them.
        listing: The objects as they are.
    """

    def is_untouched(name: str) -> bool:
        return current.get(name) == synced.get(name)

    objects = listing.objects
    folders = _folders_of(objects)
    changed = (name for name, etag in objects.items() if known.get(name) != etag and name not in folders)
    gone = (name for name in synced if name not in objects and is_untouched(name) and listing.covers(name))
    return PullChanges(tuple(sorted(filter(is_untouched, changed))), tuple(sorted(gone)))


def _folders_of(names: Versions) -> set[str]:
    """Return the folders of these objects. A pattern `clean` beside `clean/*` names no file if there are files below it."""
    return {
        "/".join(parts[:length]) for name in names for parts in [name.split("/")] for length in range(2, len(parts))
    }
