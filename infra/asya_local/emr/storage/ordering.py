"""Orders the changes of a mirror for their upload to S3. Pure.

Control files refer to other files: a journal lists completed envelopes, a commit says that all results are complete. S3 has no
transactions, so a control file must arrive after the files that it refers to. A push therefore scans twice. It copies the
control files of the first scan. The files that they refer to are older, so the second scan finds them, and they go first.
Commits go last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    """Return whether a file is an object: not a checksum, a draft or a file of an unfinished write."""
    return not any(part.startswith((".", "_temporary")) for part in name.split("/")[1:])


def compare(uploaded: Snapshot, current: Snapshot, rule: ControlRule) -> MirrorChanges:
    """Return the changes that bring S3 from the uploaded snapshot to the current one."""
    written = sorted(name for name, version in current.items() if uploaded.get(name) != version)
    return MirrorChanges(
        data=tuple(name for name in written if not is_control(name, rule)),
        deleted=tuple(sorted(name for name in uploaded if name not in current)),
        control=tuple(name for name in written if is_control(name, rule) and not is_commit(name, rule)),
        commits=tuple(name for name in written if is_commit(name, rule)),
    )
