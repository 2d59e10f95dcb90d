"""Mirrors the part of S3 that one job run sees into a folder, which Spark mounts at `s3://`.

The mirror reads and writes with the run's own credentials: the job role, restricted by the run's session policy.
"""

from __future__ import annotations

import logging
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from asya_local.emr.storage.ordering import FileVersion, MirrorChanges, Snapshot, compare, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from asya_local.emr.access.readable_prefixes import ReadablePrefix
    from asya_local.emr.settings import ControlRule

_logger = logging.getLogger(__name__)
_TRANSFERS = 8
_DENIED = frozenset({"AccessDenied", "403", "AllAccessDisabled", "Forbidden"})


class MirrorError(Exception):
    """S3 refuses a write of the job. On EMR Serverless the job itself would fail."""


@dataclass
class Mirror:
    """A folder `{root}/{bucket}/{key}` and the versions of its files that S3 has.

    Args:
        root: The folder; Spark mounts the folder of each bucket.
        staging: A folder outside the root for copies of control files during a push.
        s3: A client with the run's credentials.
        rule: Selects control files and commits.
        open_files: Returns the incomplete files: those that the job's processes have open for writing.
    """

    root: Path
    staging: Path
    s3: Any
    rule: ControlRule
    open_files: Callable[[], set[str]]
    _uploaded: dict[str, FileVersion] = field(default_factory=dict)

    @property
    def buckets(self) -> list[str]:
        """The names of the mirrored buckets, sorted."""
        return sorted(entry.name for entry in self.root.iterdir()) if self.root.is_dir() else []

    def fetch(self, prefixes: Iterable[ReadablePrefix]) -> int:
        """Download all objects that the job may read; return their number."""
        objects: set[tuple[str, str]] = set()
        for prefix in prefixes:
            (self.root / prefix.bucket).mkdir(parents=True, exist_ok=True)
            objects.update((prefix.bucket, key) for key in self._keys(prefix))
        with ThreadPoolExecutor(_TRANSFERS) as pool:
            count = sum(pool.map(lambda each: self._fetch(*each), sorted(objects - _folders_of(objects))))
        self._uploaded = self._scan()
        return count

    def refused_paths(self, folders: Iterable[ReadablePrefix]) -> list[str]:
        """Return the paths that S3A could not open as the run: before it lists a folder, it sends HEAD to its key.

        Returns:
            `s3://bucket/folder` for the folder itself, `s3://bucket/folder/` for everything below it.
        """
        places = [(place.bucket, f"{place.folder}{below}") for place in folders for below in ("", "/")]
        with ThreadPoolExecutor(_TRANSFERS) as pool:
            refused = pool.map(lambda each: self._refuses_head(*each), places)
            return [f"s3://{bucket}/{key}" for (bucket, key), denied in zip(places, refused, strict=True) if denied]

    def _refuses_head(self, bucket: str, key: str) -> bool:
        # MiniStack checks `folder/` as `folder`, so another key stands for those below.
        name = f"{key}_" if key.endswith("/") else key
        try:
            self.s3.head_object(Bucket=bucket, Key=name)
        except ClientError as error:
            return error.response["Error"]["Code"] in _DENIED
        return False

    def _keys(self, prefix: ReadablePrefix) -> Iterator[str]:
        if prefix.is_single_object:
            yield prefix.pattern
            return
        try:
            for page in self.s3.get_paginator("list_objects_v2").paginate(
                Bucket=prefix.bucket, Prefix=prefix.key_prefix
            ):
                for entry in page.get("Contents", []):
                    if fnmatchcase(entry["Key"], prefix.pattern):
                        yield entry["Key"]
        except ClientError as error:
            _logger.warning("the job cannot list s3://%s/%s: %s", prefix.bucket, prefix.pattern, error)

    def _fetch(self, bucket: str, key: str) -> bool:
        path = self._path(f"{bucket}/{key}")
        if path is None:
            _logger.warning("s3://%s/%s is not a valid file path; the job does not see it", bucket, key)
            return False
        try:
            body = self.s3.get_object(Bucket=bucket, Key=key)["Body"]
        except ClientError as error:
            _logger.info("the job cannot read s3://%s/%s: %s", bucket, key, error)
            return False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                shutil.copyfileobj(body, file)
        except (ClientError, OSError) as error:
            _logger.info("the job cannot read s3://%s/%s: %s", bucket, key, error)
            path.unlink(missing_ok=True)
            return False
        return True

    def _path(self, name: str) -> Path | None:
        """Return the file of an object; None for keys of folders or outside the root (`a//b`, `../a`, `a/`)."""
        parts = name.split("/")
        return None if any(part in {"", ".", ".."} for part in parts) else self.root.joinpath(*parts)

    def push(self, *, everything: bool) -> MirrorChanges:
        """Upload the changes of the job to S3, in the order of `ordering`.

        Args:
            everything: True at the end of the run. Before, data waits until a control file refers to it.

        Raises:
            MirrorError: S3 refuses a write; later changes stay in the folder.
        """
        first = compare(self._uploaded, self._complete_files(everything=everything), self.rule)
        control_files = [*first.control, *first.commits]
        if not control_files and not everything:
            return MirrorChanges((), (), (), ())
        staged = {name: version for name in control_files if (version := self._copy_to_staging(name))}
        now = self._complete_files(everything=everything)
        second = compare(self._uploaded, now, self.rule)
        self._upload(((name, self.root / name) for name in second.data), now)
        self._delete(second.deleted)
        self._upload(((name, self.staging / name) for name in first.control if name in staged), staged)
        self._upload(((name, self.staging / name) for name in first.commits if name in staged), staged)
        shutil.rmtree(self.staging, ignore_errors=True)
        return MirrorChanges(second.data, second.deleted, first.control, first.commits)

    def _complete_files(self, *, everything: bool) -> Snapshot:
        """Return the complete files, and the uploaded versions of incomplete ones."""
        now = self._scan()
        incomplete = set() if everything else self.open_files()
        for path in incomplete:
            name = os.path.relpath(path, self.root)
            if name in now:
                if name in self._uploaded:
                    now[name] = self._uploaded[name]
                else:
                    del now[name]
        return now

    def _scan(self) -> dict[str, FileVersion]:
        versions: dict[str, FileVersion] = {}
        for folder, _, files in os.walk(self.root):
            for file in files:
                path = os.path.join(folder, file)
                name = os.path.relpath(path, self.root)
                if not is_object(name):
                    continue
                try:
                    status = os.stat(path)
                except FileNotFoundError:
                    continue
                versions[name] = FileVersion(status.st_size, status.st_mtime_ns, status.st_ino)
        return versions

    def _copy_to_staging(self, name: str) -> FileVersion | None:
        """Copy a file; return None if it changes or disappears meanwhile. The next push copies it again."""
        copy = self.staging / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            before = os.stat(self.root / name)
            shutil.copyfile(self.root / name, copy)
            after = os.stat(self.root / name)
        except FileNotFoundError:
            return None
        version = FileVersion(before.st_size, before.st_mtime_ns, before.st_ino)
        is_unchanged = (
            version == FileVersion(after.st_size, after.st_mtime_ns, after.st_ino)
            and copy.stat().st_size == version.size
        )
        return version if is_unchanged else None

    def _upload(self, files: Iterable[tuple[str, Path]], versions: Snapshot) -> None:
        def upload(item: tuple[str, Path]) -> None:
            name, path = item
            bucket, _, key = name.partition("/")
            try:
                with path.open("rb") as file:
                    self.s3.put_object(Bucket=bucket, Key=key, Body=file)
            except FileNotFoundError:
                return  # deleted since the scan; the next push deletes the object
            except Exception as error:
                raise _mirror_error("s3:PutObject", name, error) from error
            self._uploaded[name] = versions[name]

        with ThreadPoolExecutor(_TRANSFERS) as pool:
            list(pool.map(upload, files))

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            bucket, _, key = name.partition("/")
            try:
                self.s3.delete_object(Bucket=bucket, Key=key)
            except (ClientError, BotoCoreError) as error:
                raise _mirror_error("s3:DeleteObject", name, error) from error
            self._uploaded.pop(name, None)


def _folders_of(objects: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the folders of these objects. A pattern `clean` beside `clean/*` names no file if there are files below it."""
    return {
        (bucket, "/".join(parts[:length]))
        for bucket, key in objects
        for parts in [key.split("/")]
        for length in range(1, len(parts))
    }


def _mirror_error(action: str, name: str, error: Exception) -> MirrorError:
    text = str(error)
    kind = "AccessDenied" if any(code in text for code in _DENIED) else type(error).__name__
    return MirrorError(f"{kind}: {action} on s3://{name}: {text}")
