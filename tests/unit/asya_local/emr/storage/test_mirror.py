# ruff: noqa: N803 - boto3 names its parameters so
"""The mirror uploads to a bucket in memory, which records the order of the writes."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from asya_local.emr.access.readable_prefixes import ReadablePrefix
from asya_local.emr.settings import ControlRule
from asya_local.emr.storage.mirror import Mirror, MirrorError
from asya_local.emr.storage.ordering import FileVersion, compare, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULE = ControlRule()


class Bucket:
    """The calls of an S3 client that the mirror uses. It refuses keys under `denied/`."""

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        self.objects = dict(objects or {})
        self.writes: list[str] = []

    def get_paginator(self, _operation: str) -> Bucket:
        return self

    def paginate(self, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:
        yield {"Contents": [{"Key": key} for key in sorted(self.objects) if key.startswith(Prefix)]}

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        self._check(Key, "GetObject")
        if Key not in self.objects:
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        return {"Body": io.BytesIO(self.objects[Key])}

    def head_object(self, Bucket: str, Key: str) -> dict[str, Any]:
        if Key.startswith("denied/") or Key in {"data", "write-only", "write-only/_"}:
            raise ClientError({"Error": {"Code": "403", "Message": "Forbidden"}}, "HeadObject")
        if Key not in self.objects:
            raise ClientError({"Error": {"Code": "404", "Message": "Not Found"}}, "HeadObject")
        return {}

    def put_object(self, Bucket: str, Key: str, Body: io.BufferedReader) -> None:
        self._check(Key, "PutObject")
        self.objects[Key] = Body.read()
        self.writes.append(f"put {Key}")

    def delete_object(self, Bucket: str, Key: str) -> None:
        self._check(Key, "DeleteObject")
        del self.objects[Key]
        self.writes.append(f"delete {Key}")

    def _check(self, key: str, operation: str) -> None:
        if key.startswith("denied/"):
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)


class Folder:
    """A mirror of one bucket; `busy` are its open files."""

    def __init__(self, path: Path, objects: dict[str, bytes] | None = None) -> None:
        self.bucket = Bucket(objects)
        self.busy: set[str] = set()
        self.root = path / "s3"
        (self.root / "b").mkdir(parents=True)
        self.mirror = Mirror(self.root, path / "staging", self.bucket, RULE, lambda: self.busy)

    def write(self, key: str, text: str = "x") -> None:
        path = self.root / "b" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_only_what_matches_comes_in(tmp_path: Path) -> None:
    objects = {"data/a.csv": b"1", "data/b.txt": b"2", "one": b"3", "data//c.csv": b"4", "data/": b"", "denied/x": b"5"}
    folder = Folder(tmp_path, objects)

    prefixes = [
        ReadablePrefix("b", "data/*.csv"),
        ReadablePrefix("b", "one"),
        ReadablePrefix("b", "none"),
        ReadablePrefix("b", "denied/*"),
    ]
    assert folder.mirror.fetch(prefixes) == 2

    files = {str(path.relative_to(folder.root)) for path in folder.root.rglob("*") if path.is_file()}
    assert files == {"b/data/a.csv", "b/one"}
    assert not folder.mirror.push(everything=True)


def test_a_folder_that_policies_name_is_no_file(tmp_path: Path) -> None:
    """Policies allow `data` beside `data/*`, because S3A asks for it."""
    folder = Folder(tmp_path, {f"data/{number}": b"1" for number in range(20)})

    for names in (["data", "data/*", "none", "none/*"], ["none", "data/*", "data"]):
        assert folder.mirror.fetch([ReadablePrefix("b", name) for name in names]) == 20

    assert (folder.root / "b/data").is_dir()
    assert not (folder.root / "b/none").exists()


def test_an_object_may_have_the_name_of_a_folder_pattern(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"data": b"1"})
    assert folder.mirror.fetch([ReadablePrefix("b", "data"), ReadablePrefix("b", "data/*")]) == 1
    assert (folder.root / "b/data").read_bytes() == b"1"


def test_paths_are_refused_whose_head_is_refused(folder: Folder) -> None:
    places = [ReadablePrefix("b", f"{name}/*") for name in ("clean", "data", "write-only")]
    assert folder.mirror.refused_paths(places) == ["s3://b/data", "s3://b/write-only", "s3://b/write-only/"]


def test_data_waits_until_a_control_file_needs_it(folder: Folder) -> None:
    folder.write("data/out/part")
    assert not folder.mirror.push(everything=False)

    folder.write("runs/a/1/commit.json")
    folder.write("runs/a/1/heartbeat.json")
    folder.mirror.push(everything=False)

    assert folder.bucket.writes == ["put data/out/part", "put runs/a/1/heartbeat.json", "put runs/a/1/commit.json"]


def test_open_files_wait(folder: Folder) -> None:
    folder.write("data/done")
    folder.write("data/half", "hal")
    folder.write("runs/a/1/journal")
    folder.busy = {str(folder.root / "b/data/half")}
    folder.mirror.push(everything=False)
    assert folder.bucket.writes == ["put data/done", "put runs/a/1/journal"]

    folder.write("data/half", "whole")
    folder.mirror.push(everything=True)
    assert folder.bucket.objects["data/half"] == b"whole"


def test_a_control_file_is_uploaded_as_of_the_first_scan(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job writes during the push. Data of the second scan is uploaded, a later control file is not."""
    folder.write("data/1")
    folder.write("runs/a/1/journal", "1 is done")
    scan, scans = folder.mirror._scan, 0

    def scan_while_the_job_writes() -> dict[str, FileVersion]:
        nonlocal scans
        scans += 1
        if scans == 2:
            folder.write("data/2")
            folder.write("runs/a/1/journal", "1 and 2 are done")
        return scan()

    monkeypatch.setattr(folder.mirror, "_scan", scan_while_the_job_writes)
    folder.mirror.push(everything=False)
    assert folder.bucket.objects == {"data/1": b"x", "data/2": b"x", "runs/a/1/journal": b"1 is done"}

    folder.mirror.push(everything=True)
    assert folder.bucket.objects["runs/a/1/journal"] == b"1 and 2 are done"


def test_overwriting_puts_before_it_deletes(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"data/out/old": b"old"})
    folder.mirror.fetch([ReadablePrefix("b", "data/*")])
    os.unlink(folder.root / "b/data/out/old")
    folder.write("data/out/new")
    folder.write("runs/a/1/commit.json")

    folder.mirror.push(everything=True)

    assert folder.bucket.writes == ["put data/out/new", "delete data/out/old", "put runs/a/1/commit.json"]


def test_a_refused_write_holds_the_commit_back(folder: Folder) -> None:
    folder.write("denied/x")
    folder.write("runs/a/1/commit.json")

    with pytest.raises(MirrorError, match=r"AccessDenied: s3:PutObject on s3://b/denied/x"):
        folder.mirror.push(everything=True)

    assert "runs/a/1/commit.json" not in folder.bucket.objects


@pytest.mark.parametrize("name", ["b/data/.part.crc", "b/data/_temporary/0/part", "b/.spark-staging-1/part"])
def test_drafts_are_not_objects(name: str) -> None:
    assert not is_object(name)
    assert is_object("b/data/_SUCCESS")


def test_changes_are_sorted_by_kind() -> None:
    old, new = FileVersion(1, 1, 1), FileVersion(1, 2, 1)
    differences = compare(
        {"b/same": old, "b/changed": old, "b/gone": old},
        {"b/same": old, "b/changed": new, "b/runs/1/commit.json": new, "b/runs/1/x": new, "b/data/commit.json": new},
        RULE,
    )
    assert differences.data == ("b/changed", "b/data/commit.json")
    assert differences.deleted == ("b/gone",)
    assert differences.control == ("b/runs/1/x",)
    assert differences.commits == ("b/runs/1/commit.json",)
