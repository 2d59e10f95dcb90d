"""The part of S3 that one job run may see, as a folder that Spark mounts under `s3://`.

Everything is read and written with the run's own credentials: the job role, narrowed by the run's session policy.
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
_DENIED = frozenset({"AccessDenied", "403", "AllAccessDisabled"})


class MirrorError(Exception):
    """Something the job wrote cannot reach S3; on EMR Serverless the job itself would have failed at it."""


@dataclass
class Mirror:
    """A folder `{root}/{bucket}/{key}`, and what of it S3 has.

    Args:
        root: The folder; Spark mounts each bucket's folder.
        staging: Where control files are staged during a pass. Outside of the root.
        s3: A client with the run's credentials.
        open_files: Says which files the job's processes have open for writing: they are not complete yet.
    """

    root: Path
    staging: Path
    s3: Any
    rule: ControlRule
    open_files: Callable[[], set[str]]
    _known: dict[str, FileVersion] = field(default_factory=dict)

    @property
    def buckets(self) -> list[str]:
        """The names of the mirrored buckets, sorted."""
        return sorted(entry.name for entry in self.root.iterdir()) if self.root.is_dir() else []

    def fetch(self, prefixes: Iterable[ReadablePrefix]) -> int:
        """Bring in everything the job may read. Returns the number of objects."""
        objects: set[tuple[str, str]] = set()
        for prefix in prefixes:
            (self.root / prefix.bucket).mkdir(parents=True, exist_ok=True)
            objects.update((prefix.bucket, key) for key in self._keys(prefix))
        with ThreadPoolExecutor(_TRANSFERS) as pool:
            fetched = sum(pool.map(lambda each: self._fetch(*each), sorted(objects)))
        self._known = self._scan()
        return fetched

    def _keys(self, prefix: ReadablePrefix) -> Iterator[str]:
        if prefix.is_single_object:
            yield prefix.pattern
            return
        try:
            for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=prefix.bucket, Prefix=prefix.prefix):
                for entry in page.get("Contents", []):
                    if fnmatchcase(entry["Key"], prefix.pattern):
                        yield entry["Key"]
        except ClientError as error:
            _logger.warning("s3://%s/%s cannot be listed by the job: %s", prefix.bucket, prefix.pattern, error)

    def _fetch(self, bucket: str, key: str) -> bool:
        path = self._path(f"{bucket}/{key}")
        if path is None:
            _logger.warning("s3://%s/%s cannot be a file here; the job does not see it", bucket, key)
            return False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                shutil.copyfileobj(self.s3.get_object(Bucket=bucket, Key=key)["Body"], file)
        except (ClientError, OSError) as error:
            _logger.info("s3://%s/%s is not there for the job: %s", bucket, key, error)
            path.unlink(missing_ok=True)
            return False
        return True

    def _path(self, name: str) -> Path | None:
        """The file of an object; None for keys that would be a folder or lie outside (`a//b`, `../a`, `a/`)."""
        parts = name.split("/")
        return None if any(part in {"", ".", ".."} for part in parts) else self.root.joinpath(*parts)

    def push(self, *, everything: bool) -> MirrorChanges:
        """Bring what the job has written to S3, in the order that `ordering` explains.

        Args:
            everything: At the end of the run, when nobody writes any more. Before, data waits until a control file needs it.

        Raises:
            MirrorError: S3 refuses something; what is ordered after it stays here.
        """
        first = compare(self._known, self._complete_files(everything=everything), self.rule)
        statements = [*first.control, *first.commits]
        if not statements and not everything:
            return MirrorChanges((), (), (), ())
        staged = {name: version for name in statements if (version := self._copy_to_staging(name))}
        now = self._complete_files(everything=everything)
        found = compare(self._known, now, self.rule)
        self._upload(((name, self.root / name) for name in found.data), now)
        self._delete(found.deleted)
        self._upload(((name, self.staging / name) for name in first.control if name in staged), staged)
        self._upload(((name, self.staging / name) for name in first.commits if name in staged), staged)
        shutil.rmtree(self.staging, ignore_errors=True)
        return MirrorChanges(found.data, found.deleted, first.control, first.commits)

    def _complete_files(self, *, everything: bool) -> Snapshot:
        """The files that are complete; one that is being written counts as it was."""
        now = self._scan()
        busy = set() if everything else self.open_files()
        for path in busy:
            name = os.path.relpath(path, self.root)
            if name in now:
                if name in self._known:
                    now[name] = self._known[name]
                else:
                    del now[name]
        return now

    def _scan(self) -> dict[str, FileVersion]:
        found: dict[str, FileVersion] = {}
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
                found[name] = FileVersion(status.st_size, status.st_mtime_ns, status.st_ino)
        return found

    def _copy_to_staging(self, name: str) -> FileVersion | None:
        """Copy a file as it is; None when it is being changed, or is gone: the next pass finds it again."""
        copy = self.staging / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            before = os.stat(self.root / name)
            shutil.copyfile(self.root / name, copy)
            after = os.stat(self.root / name)
        except FileNotFoundError:
            return None
        version = FileVersion(before.st_size, before.st_mtime_ns, before.st_ino)
        same = (
            version == FileVersion(after.st_size, after.st_mtime_ns, after.st_ino)
            and copy.stat().st_size == version.size
        )
        return version if same else None

    def _upload(self, files: Iterable[tuple[str, Path]], versions: Snapshot) -> None:
        def upload(item: tuple[str, Path]) -> None:
            name, path = item
            bucket, _, key = name.partition("/")
            try:
                with path.open("rb") as file:
                    self.s3.put_object(Bucket=bucket, Key=key, Body=file)
            except FileNotFoundError:
                return  # deleted since: the next look sees that
            except Exception as error:
                raise _mirror_error("s3:PutObject", name, error) from error
            self._known[name] = versions[name]

        with ThreadPoolExecutor(_TRANSFERS) as pool:
            list(pool.map(upload, files))

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            bucket, _, key = name.partition("/")
            try:
                self.s3.delete_object(Bucket=bucket, Key=key)
            except (ClientError, BotoCoreError) as error:
                raise _mirror_error("s3:DeleteObject", name, error) from error
            self._known.pop(name, None)


def _mirror_error(action: str, name: str, error: Exception) -> MirrorError:
    text = str(error)
    kind = "AccessDenied" if any(code in text for code in _DENIED) else type(error).__name__
    return MirrorError(f"{kind}: {action} on s3://{name}: {text}")
