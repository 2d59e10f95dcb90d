"""Decides what a mirror takes over from S3 while its job runs, and the order of its uploads. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya_local.emr.access.policies import matches

if TYPE_CHECKING:
    from asya_local.emr.access.policies import ReadablePrefix
    from asya_local.emr.settings import ControlRule

Snapshot = Mapping[str, "FileVersion"]
"""The files of a mirror: `bucket/key` to the version of the file."""


@dataclass(frozen=True)
class FileVersion:
    """Distinguishes one version of a file from the next."""

    size: int
    modified: int
    """Nanoseconds since the epoch."""
    inode: int


@dataclass(frozen=True)
class MirrorChanges:
    """The changes between two scans of a mirror, in the order of their upload."""

    data: tuple[str, ...]
    deleted: tuple[str, ...]
    control: tuple[str, ...]
    commits: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.data or self.deleted or self.control or self.commits)


def is_control(name: str, rule: ControlRule) -> bool:
    """Return whether a file refers to other files."""
    return name.partition("/")[2].startswith(rule.prefix)


def is_commit(name: str, rule: ControlRule) -> bool:
    """Return whether a file says that a run, or a part of it, is complete."""
    return is_control(name, rule) and name.rsplit("/", 1)[-1] == rule.commit_name


def is_object(name: str) -> bool:
    """Return whether a file that the job has made is an object, and no draft of Spark's writers."""
    return not any(part == "_temporary" or part.startswith(".spark-staging-") for part in name.split("/")[1:])


def is_success(name: str) -> bool:
    """Return whether a file says that its folder is complete: Spark writes it after all others, and some wait for it."""
    return name.endswith("/_SUCCESS")


def is_marker(name: str) -> bool:
    """Return whether an object stands for a folder: S3A sees a folder in it, whatever its content."""
    return name.endswith("/")


def unplaceable(name: str) -> str | None:
    """Return why no path leads to an object, as `bucket/key`; None if one does."""
    parts = name.removesuffix("/").split("/")
    if "" in parts:
        return "a path has no empty part, and the key has one beside a '/'"
    odd = next((part for part in parts if part in {".", ".."}), None)
    if odd is not None:
        return f"{odd!r} leads elsewhere in a path"
    return "a path has no character NUL" if "\0" in name else None


def compare(uploaded: Snapshot, current: Snapshot, rule: ControlRule) -> MirrorChanges:
    """Return the changes that bring S3 from the uploaded snapshot to the current one."""
    written = sorted(name for name, version in current.items() if uploaded.get(name) != version)
    return MirrorChanges(
        data=tuple(name for name in written if not is_control(name, rule)),
        deleted=tuple(sorted(name for name in uploaded if name not in current)),
        control=tuple(name for name in written if is_control(name, rule) and not is_commit(name, rule)),
        commits=tuple(name for name in written if is_commit(name, rule)),
    )


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
        prefix.bucket == bucket and (prefix.pattern == key or matches(prefix.pattern, key)) for prefix in prefixes
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
    folders = folders_of(objects)
    changed = (name for name, etag in objects.items() if known.get(name) != etag and name not in folders)
    gone = (name for name in synced if name not in objects and is_untouched(name) and listing.covers(name))
    return PullChanges(tuple(sorted(filter(is_untouched, changed))), tuple(sorted(gone)))


def folders_of(names: Iterable[str]) -> set[str]:
    """Return the folders of these objects, which a disk cannot have beside files of the same names."""
    placed = (name.split("/") for name in names if unplaceable(name) is None)
    return {"/".join(parts[:length]) for parts in placed for length in range(2, len(parts))}
