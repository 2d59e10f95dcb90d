"""In which order a mirror's changes reach S3. Pure.

A job's control files are statements about other files: a journal says what is done, a commit that all of it is
there. S3 has no transactions, so a statement may arrive only after what it speaks of. Hence a pass over the mirror
looks twice: the control files are set aside as the first look finds them; whatever they speak of was written before
them, and so is found by the second look, and goes first. Commits go last of all.
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
    """What tells one version of a file from the next."""

    size: int
    modified: int
    """Nanoseconds, as the file system has it."""
    inode: int


@dataclass(frozen=True)
class MirrorChanges:
    """What differs between two looks at a mirror, in the order in which it must reach S3."""

    data: tuple[str, ...]
    deleted: tuple[str, ...]
    control: tuple[str, ...]
    commits: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.data or self.deleted or self.control or self.commits)


def is_control(name: str, rule: ControlRule) -> bool:
    """Whether a file is a statement about others."""
    return name.partition("/")[2].startswith(rule.prefix)


def is_commit(name: str, rule: ControlRule) -> bool:
    """Whether a file is the statement that a whole run, or a part of it, is complete."""
    return is_control(name, rule) and name.rsplit("/", 1)[-1] == rule.commit_name


def is_object(name: str) -> bool:
    """Whether a file stands for an object: no checksum, no draft, nothing of a write that is under way."""
    return not any(part.startswith((".", "_temporary")) for part in name.split("/")[1:])


def compare(known: Snapshot, now: Snapshot, rule: ControlRule) -> MirrorChanges:
    """What must be done for S3 to have what the mirror has now, when it had what is known."""
    written = sorted(name for name, version in now.items() if known.get(name) != version)
    return MirrorChanges(
        data=tuple(name for name in written if not is_control(name, rule)),
        deleted=tuple(sorted(name for name in known if name not in now)),
        control=tuple(name for name in written if is_control(name, rule) and not is_commit(name, rule)),
        commits=tuple(name for name in written if is_commit(name, rule)),
    )
