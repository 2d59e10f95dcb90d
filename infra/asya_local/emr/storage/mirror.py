"""Mirrors the part of S3 that one job run sees into a folder, which Spark mounts at `s3://`.

The mirror reads and writes with the run's own credentials: the job role, restricted by the run's session policy. A job may use
S3 beside Spark, so the mirror goes both ways while the job runs (`asya_local.emr.drivers.s3_sync`).
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from asya_local.emr.access.policies import ReadablePrefix
from asya_local.emr.storage.changes import (
    FileVersion,
    MirrorChanges,
    Snapshot,
    compare,
    covers,
    folders_of,
    is_marker,
    is_object,
    is_success,
    merge,
    unplaceable,
)
from asya_local.emr.storage.listing import TRANSFERS, is_unreadable, list_objects, mirror_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from asya_local.emr.settings import ControlRule
    from asya_local.emr.storage.changes import Listing

_logger = logging.getLogger(__name__)
_NOTHING = MirrorChanges((), (), (), ())
_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_MARKER = FileVersion(0, 0, 0)
"""The version of each marker: its folder is there."""


@dataclass
class Mirror:
    """A folder `{root}/{bucket}/{key}` and the versions of its files that S3 has. Pushes and pulls exclude each other.

    Args:
        root: The folder; Spark mounts the folder of each bucket.
        staging: A folder outside the root, on its file system: copies of control files and unfinished downloads.
        s3: A client with the run's credentials.
        rule: Selects control files and commits.
        open_files: Returns the incomplete files: those that the job's processes have open for writing.
    """

    root: Path
    staging: Path
    s3: Any
    rule: ControlRule
    open_files: Callable[[], set[str]]
    _synced: dict[str, FileVersion] = field(default_factory=dict)
    """The files as S3 has them."""
    _etags: dict[str, str] = field(default_factory=dict)
    """The objects that the mirror has dealt with, also those that it cannot read."""
    unseen: dict[str, str] = field(default_factory=dict)
    """The objects that no file of this disk can be, with the reason."""
    _prefixes: tuple[ReadablePrefix, ...] = ()
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def buckets(self) -> list[str]:
        """The names of the mirrored buckets, sorted."""
        return sorted(entry.name for entry in self.root.iterdir()) if self.root.is_dir() else []

    def fetch(self, prefixes: Iterable[ReadablePrefix]) -> int:
        """Download all objects that the job may read; return their number.

        Raises:
            MirrorError: S3 fails.
        """
        self._prefixes = tuple(prefixes)
        for prefix in self._prefixes:
            (self.root / prefix.bucket).mkdir(parents=True, exist_ok=True)
        return self.pull()

    def pull(self, names: Collection[str] | None = None) -> int:
        """Download the objects that are new or changed in S3, and remove the files of deleted ones; return their number.

        Files that the job wrote since the latest push stay.

        Args:
            names: Only these objects, as `bucket/key`.

        Raises:
            MirrorError: S3 fails.
        """
        with self._lock:
            prefixes = self._prefixes if names is None else self._readable(names)
            if not prefixes:
                return 0
            listing = list_objects(self.s3, prefixes)
            hidden = self._hide(listing)
            changes = merge(self._synced, self._scan(names), self._etags, listing)
            for name in changes.removed:
                self._remove(name)
            count = 0
            if changes.fetched:
                self.staging.mkdir(parents=True, exist_ok=True)
                with ThreadPoolExecutor(TRANSFERS) as pool:
                    count = sum(pool.map(lambda name: self._fetch(name, listing.objects[name]), changes.fetched))
            return count + len(changes.removed) + hidden

    def _hide(self, listing: Listing) -> int:
        """Hide objects that are the folders of others too; return how many were files. Forget hidden ones that are gone."""
        for name in [name for name in self.unseen if name not in listing.objects and listing.covers(name)]:
            del self.unseen[name]
        hidden = 0
        for name in folders_of(listing.objects) & listing.objects.keys():
            if self._version_of(name) != self._synced.get(name):
                continue  # the job has written a file of this name
            if name in self._synced:
                hidden += 1
                self._remove(name)
            self.unseen[name] = "it is also the folder of other objects, and a disk has one of the two"
        return hidden

    def _readable(self, names: Iterable[str]) -> tuple[ReadablePrefix, ...]:
        parts = (name.partition("/") for name in names if covers(self._prefixes, name))
        return tuple(ReadablePrefix(bucket, key) for bucket, _, key in parts)

    def _fetch(self, name: str, etag: str) -> bool:
        """Bring an object to its place; note why, if the disk has none for it."""
        reason, is_fetched = unplaceable(name), False
        try:
            if reason is None:
                is_fetched = self._make_folder(name) if is_marker(name) else self._download(name)
        except OSError as error:
            reason = error.strerror or str(error)
        if reason is None:
            self.unseen.pop(name, None)
            self._etags[name] = etag
        else:
            self.unseen[name] = reason
            _logger.warning("the job does not see s3://%s: %s", name, reason)
        return is_fetched

    def _make_folder(self, name: str) -> bool:
        (self.root / name).mkdir(parents=True, exist_ok=True)
        self._synced[name] = _MARKER
        return True

    def _download(self, name: str) -> bool:
        bucket, _, key = name.partition("/")
        number, draft = tempfile.mkstemp(dir=self.staging)
        try:
            with open(number, "wb") as file:
                shutil.copyfileobj(self.s3.get_object(Bucket=bucket, Key=key)["Body"], file)
            return self._install(Path(draft), self.root / name, name)
        except (ClientError, BotoCoreError) as error:
            if not is_unreadable(error):
                raise mirror_error("s3:GetObject", name, error) from error
            _logger.info("the job cannot read s3://%s: %s", name, error)
        finally:
            Path(draft).unlink(missing_ok=True)
        return False

    def _install(self, draft: Path, path: Path, name: str) -> bool:
        """Move a download to its place, unless the job wrote there meanwhile. Open readers keep the file that they have."""
        path.parent.mkdir(parents=True, exist_ok=True)
        version, synced = _version(draft), self._synced.get(name)
        if _version(path) != synced:
            return _is_own(path)
        if synced is not None:
            os.replace(draft, path)
        else:
            try:
                os.link(draft, path)
            except FileExistsError:
                return _is_own(path)
        if version is not None:
            self._synced[name] = version
        return True

    def _remove(self, name: str) -> None:
        path = self.root / name
        if self._version_of(name) != self._synced.pop(name):
            return
        self._etags.pop(name, None)
        if not is_marker(name):
            path.unlink(missing_ok=True)
        bucket = self.root / name.partition("/")[0]
        for folder in (path, *path.parents) if is_marker(name) else path.parents:
            if folder == bucket or f"{folder.relative_to(self.root)}/" in self._synced:
                return
            try:
                folder.rmdir()  # S3 has no folders without objects
            except OSError:
                return

    def push(self, *, everything: bool) -> MirrorChanges:
        """Upload the changes of the job to S3, in the order of `ordering`.

        Args:
            everything: True at the end of the run. Before, data waits until a control file refers to it.

        Raises:
            MirrorError: S3 refuses a write; later changes stay in the folder.
        """
        with self._lock:
            return self._push(everything=everything, waits=not everything)

    def push_complete(self) -> MirrorChanges:
        """Upload all changes of the job but files that it still writes; cheap if there are none.

        Raises:
            MirrorError: S3 refuses a write; later changes stay in the folder.
        """
        with self._lock:
            return self._push(everything=False, waits=False)

    def _push(self, *, everything: bool, waits: bool) -> MirrorChanges:
        now = self._scan()
        if not compare(self._synced, now, self.rule):
            return _NOTHING
        first = compare(self._synced, self._complete(now, everything=everything), self.rule)
        control_files = [*first.control, *first.commits]
        if not first or (waits and not control_files):
            return _NOTHING
        staged = {name: version for name in control_files if (version := self._copy_to_staging(name))}
        complete = self._complete(self._scan(), everything=everything)
        second = compare(self._synced, complete, self.rule)
        self._upload(((name, self.root / name) for name in second.data if not is_success(name)), complete)
        self._delete(second.deleted)
        self._upload(((name, self.root / name) for name in second.data if is_success(name)), complete)
        self._upload(((name, self.staging / name) for name in first.control if name in staged), staged)
        self._upload(((name, self.staging / name) for name in first.commits if name in staged), staged)
        shutil.rmtree(self.staging, ignore_errors=True)
        return MirrorChanges(second.data, second.deleted, first.control, first.commits)

    def _complete(self, now: dict[str, FileVersion], *, everything: bool) -> Snapshot:
        """Return the complete files, and the synced versions of incomplete ones."""
        complete = dict(now)
        for path in set() if everything else self.open_files():
            name = os.path.relpath(path, self.root)
            if name in complete:
                if name in self._synced:
                    complete[name] = self._synced[name]
                else:
                    del complete[name]
        return complete

    def _scan(self, names: Collection[str] | None = None) -> dict[str, FileVersion]:
        """Return the versions of all files and markers, or of these. What S3 holds is an object, whatever its name."""
        paths = [*self._files(), *filter(is_marker, self._synced)] if names is None else names
        objects = (name for name in paths if unplaceable(name) is None and (name in self._synced or is_object(name)))
        versions = ((name, self._version_of(name)) for name in objects)
        return {name: version for name, version in versions if version is not None}

    def _version_of(self, name: str) -> FileVersion | None:
        path = os.path.join(self.root, name)
        if is_marker(name):
            return _MARKER if os.path.isdir(path) else None
        return _version(path)

    def _files(self) -> list[str]:
        start = len(str(self.root)) + 1
        return [os.path.join(folder, file)[start:] for folder, _, files in os.walk(self.root) for file in files]

    def _copy_to_staging(self, name: str) -> FileVersion | None:
        """Copy a file; return None if it changes or disappears meanwhile. The next push copies it again."""
        copy = self.staging / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        before = _version(self.root / name)
        try:
            shutil.copyfile(self.root / name, copy)
        except FileNotFoundError:
            return None
        is_unchanged = (
            before is not None and before == _version(self.root / name) and copy.stat().st_size == before.size
        )
        return before if is_unchanged else None

    def _upload(self, files: Iterable[tuple[str, Path]], versions: Snapshot) -> None:
        def upload(item: tuple[str, Path]) -> None:
            name, path = item
            bucket, _, key = name.partition("/")
            try:
                with path.open("rb") as file:
                    response = self.s3.put_object(Bucket=bucket, Key=key, Body=file)
            except FileNotFoundError:
                return  # deleted since the scan; the next push deletes the object
            except Exception as error:
                raise mirror_error("s3:PutObject", name, error) from error
            self._synced[name] = versions[name]
            self._etags[name] = str(response["ETag"])

        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(upload, files))

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            bucket, _, key = name.partition("/")
            try:
                self.s3.delete_object(Bucket=bucket, Key=key)
            except (ClientError, BotoCoreError) as error:
                raise mirror_error("s3:DeleteObject", name, error) from error
            self._synced.pop(name, None)
            self._etags.pop(name, None)


def _version(path: Path | str) -> FileVersion | None:
    """Return the version of a file; None if there is none."""
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise
    return None if stat.S_ISDIR(status.st_mode) else FileVersion(status.st_size, status.st_mtime_ns, status.st_ino)


def _is_own(path: Path) -> bool:
    """Return False if the job has a file here, which it has written since.

    Raises:
        OSError: A folder is in the way, or a file whose name differs in a way that the disk does not heed, such as its case.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is also the folder of files of the job")
    if path.name not in os.listdir(path.parent):
        raise FileExistsError(errno.EEXIST, "the disk takes its name for that of another object")
    return False
