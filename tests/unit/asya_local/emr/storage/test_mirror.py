"""The mirror uploads to a bucket in memory, which records the order of the writes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from asya_local.emr.access.policies import ReadablePrefix
from asya_local.emr.storage.changes import FileVersion, compare, is_object
from asya_local.emr.storage.listing import MirrorError
from tests.doubles.mirrored_bucket import RULE, Folder

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize("names", [["data", "data/*", "none", "none/*"], ["none", "data/*", "data"]])
def test_a_folder_that_policies_name_is_no_file(tmp_path: Path, names: list[str]) -> None:
    """Policies allow `data` beside `data/*`, because S3A asks for it."""
    folder = Folder(tmp_path, {f"data/{number}": b"1" for number in range(20)})

    assert folder.mirror.fetch([ReadablePrefix("b", name) for name in names]) == 20

    assert (folder.root / "b/data").is_dir()
    assert not (folder.root / "b/none").exists()


def test_an_object_may_have_the_name_of_a_folder_pattern(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"data": b"1"})
    assert folder.mirror.fetch([ReadablePrefix("b", "data"), ReadablePrefix("b", "data/*")]) == 1
    assert (folder.root / "b/data").read_bytes() == b"1"


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


def test_overwriting_puts_before_it_deletes_and_says_last_that_it_has(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"data/out/old": b"old"})
    folder.mirror.fetch([ReadablePrefix("b", "data/*")])
    os.unlink(folder.root / "b/data/out/old")
    folder.write("data/out/new")
    folder.write("data/out/_SUCCESS")
    folder.write("runs/a/1/commit.json")

    folder.mirror.push(everything=True)

    assert folder.bucket.writes == [
        *("put data/out/new", "delete data/out/old", "put data/out/_SUCCESS"),
        "put runs/a/1/commit.json",
    ]


def test_a_refused_write_holds_the_commit_back(folder: Folder) -> None:
    folder.write("denied/x")
    folder.write("runs/a/1/commit.json")

    with pytest.raises(MirrorError, match=r"AccessDenied: s3:PutObject on s3://b/denied/x"):
        folder.mirror.push(everything=True)

    assert "runs/a/1/commit.json" not in folder.bucket.objects


def test_a_push_for_boto3_takes_data_and_deletions_but_no_open_files(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"data/old": b"old"})
    folder.mirror.fetch([ReadablePrefix("b", "data/*")])
    (folder.root / "b/data/old").unlink()
    folder.write("data/done")
    folder.write("data/half", "hal")
    folder.write("data/out/_temporary/0/part")
    folder.busy = {str(folder.root / "b/data/half")}

    assert folder.mirror.push_complete()

    assert folder.bucket.writes == ["put data/done", "delete data/old"]


def test_a_push_for_boto3_without_changes_does_not_look_at_open_files(folder: Folder) -> None:
    folder.write("data/done")
    folder.mirror.push_complete()
    del folder.busy

    assert not folder.mirror.push_complete()


def test_a_pull_brings_what_others_wrote(tmp_path: Path) -> None:
    objects = {"data/same": b"1", "data/changed": b"1", "data/out/gone": b"1", "data/out/gone2": b"1"}
    folder = Folder(tmp_path, objects)
    folder.mirror.fetch([ReadablePrefix("b", "data/*")])
    del folder.bucket.objects["data/out/gone"], folder.bucket.objects["data/out/gone2"]
    folder.bucket.objects.update({"data/changed": b"2", "data/new": b"3"})
    folder.bucket.calls.clear()

    assert folder.mirror.pull() == 4

    assert folder.files() == {"data/same": "1", "data/changed": "2", "data/new": "3"}
    assert not (folder.root / "b/data/out").exists()  # S3 has no folders
    assert sorted(folder.bucket.reads) == ["data/changed", "data/new"]
    assert folder.mirror.pull() == 0
    assert not folder.mirror.push(everything=True)
    assert not folder.bucket.writes


def test_a_pull_keeps_what_the_job_wrote(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"data/written": b"1", "data/deleted": b"1", "data/gone": b"1"})
    folder.mirror.fetch([ReadablePrefix("b", "data/*")])
    folder.write("data/written", "mine")
    folder.write("data/gone", "mine")
    folder.write("data/new", "mine")
    (folder.root / "b/data/deleted").unlink()
    folder.bucket.objects.update({"data/written": b"2", "data/deleted": b"2", "data/new": b"2"})
    del folder.bucket.objects["data/gone"]

    assert folder.mirror.pull() == 0
    assert folder.files() == {"data/written": "mine", "data/gone": "mine", "data/new": "mine"}

    folder.mirror.push(everything=True)
    assert folder.bucket.objects == {"data/written": b"mine", "data/gone": b"mine", "data/new": b"mine"}


def test_a_pull_does_not_replace_what_the_job_writes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path, {"data/1": b"1"})
    folder.mirror.fetch([ReadablePrefix("b", "data/*")])
    folder.bucket.objects.update({"data/1": b"2", "data/2": b"2"})
    read = folder.bucket.get_object

    def read_while_the_job_writes(**parameters: str) -> object:
        folder.write(parameters["Key"], "mine")
        return read(**parameters)

    monkeypatch.setattr(folder.bucket, "get_object", read_while_the_job_writes)
    folder.mirror.pull()
    assert folder.files() == {"data/1": "mine", "data/2": "mine"}

    folder.mirror.push(everything=True)
    assert folder.bucket.objects == {"data/1": b"mine", "data/2": b"mine"}


def test_a_pull_of_single_objects_asks_for_them_only(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"data/gone": b"1"})
    folder.mirror.fetch([ReadablePrefix("b", "data/*")])
    folder.bucket.bucket.objects = {"data/1": b"1", "data/2": b"2", "other": b"3"}

    assert folder.mirror.pull(["b/data/1", "b/data/gone", "b/data/none", "b/other"]) == 2

    assert folder.files() == {"data/1": "1"}
    assert folder.bucket.reads[-1] == "data/1"


def test_an_object_that_the_job_may_not_read_is_asked_for_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"denied/1": b"1"})
    folder.mirror.fetch([ReadablePrefix("b", "denied/*")])
    assert folder.mirror.pull() == 0
    assert folder.bucket.reads == ["denied/1"]


@pytest.mark.parametrize("error", [("InvalidObjectState", None), ("InvalidRequest", "400")])
def test_an_object_that_nobody_can_read_fails_no_run(tmp_path: Path, error: tuple[str, str | None]) -> None:
    """A run that writes one does not fail the next run of its actor, which mirrors all that it may read."""
    folder = Folder(tmp_path, {"data/1": b"1", "data/2": b"2"})
    folder.bucket.bucket.sealed["data/1"] = error
    assert folder.mirror.fetch([ReadablePrefix("b", "data/*"), ReadablePrefix("b", "data/1")]) == 1
    assert folder.files() == {"data/2": "2"}


def test_a_pull_removes_nothing_that_it_cannot_list(folder: Folder) -> None:
    folder.mirror.fetch([ReadablePrefix("b", "hidden/*")])
    for key in ("hidden/1", "write-only/1"):
        folder.write(key)
    folder.mirror.push_complete()
    folder.bucket.objects.clear()

    assert folder.mirror.pull() == 0
    assert folder.files() == {"hidden/1": "x", "write-only/1": "x"}


def test_a_failing_list_fails_the_pull(folder: Folder) -> None:
    with pytest.raises(MirrorError, match="SlowDown"):
        folder.mirror.fetch([ReadablePrefix("b", "broken/*")])


@pytest.mark.parametrize("name", ["b/data/_temporary/0/part", "b/.spark-staging-1/part"])
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
