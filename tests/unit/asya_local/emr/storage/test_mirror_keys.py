"""A mirror has the keys of S3, hidden names and markers of folders too; it names each key that a folder cannot have."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya_local.emr.access.policies import ReadablePrefix
from tests.doubles.mirrored_bucket import Folder
from tests.doubles.s3_keys import any_key

_SHORT = st.lists(
    st.sampled_from(
        ["a", "b", ".a", ".a.crc", "_temporary", "_temporary1", ".spark-staging-1", "", ".", "..", "a:b", "[a]", "\0"]
    ),
    min_size=1,
    max_size=3,
).map("/".join)
_KEYS = st.lists(st.one_of(_SHORT.filter(bool), any_key()), unique=True, max_size=8).map(
    lambda keys: [f"data/{key}" for key in keys]
)
EVERYTHING = [ReadablePrefix("b", "data/*")]


def placed(folder: Folder) -> dict[str, bytes]:
    """The keys of the files and of the folders without files, as S3 names both."""
    top = os.fsencode(folder.root / "b")
    found: dict[str, bytes] = {}
    for path, _, files in os.walk(top):
        for name in files:
            file = os.path.join(path, name)
            found[os.fsdecode(os.path.relpath(file, top))] = Path(os.fsdecode(file)).read_bytes()
    return found


@settings(max_examples=60, deadline=None)
@given(keys=_KEYS)
def test_what_s3_holds_is_a_file_or_is_told(keys: list[str]) -> None:
    with tempfile.TemporaryDirectory() as path:
        objects = {key: str(number).encode() for number, key in enumerate(keys)}
        folder = Folder(Path(path), objects)
        folder.mirror.fetch(EVERYTHING)

        files = placed(folder)
        told = {name.removeprefix("b/") for name in folder.mirror.unseen}
        markers = {key for key in keys if key.endswith("/")} - told
        assert files == {key: body for key, body in objects.items() if key not in told | markers}
        assert all((folder.root / "b" / marker).is_dir() for marker in markers)
        assert not folder.mirror.push(everything=True)

        for key in files:
            Path(folder.root, "b", key).write_bytes(b"changed")
        folder.mirror.push_complete()
        assert folder.bucket.objects == {**objects, **dict.fromkeys(files, b"changed")}

        for key in files:
            Path(folder.root, "b", key).unlink()
        folder.mirror.push(everything=True)
        assert set(folder.bucket.objects) == told | markers


@pytest.mark.parametrize(
    "key", [".hidden", ".x/part", "data/.part.crc", "data/_temporary_copy/x", "data/x_temporary", "a:b", "data/ \n"]
)
def test_what_a_job_writes_reaches_s3_under_its_key(tmp_path: Path, key: str) -> None:
    folder = Folder(tmp_path)
    folder.write(key, "mine")
    folder.mirror.push(everything=True)
    assert folder.bucket.objects == {key: b"mine"}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("data//x", "empty part"),
        ("data/../x", "'..'"),
        ("data/./x", "'.'"),
        ("data/a\0", "character NUL"),
        ("data/" + "x" * 256, "File name too long"),
        ("data/a", "also the folder"),
    ],
)
def test_a_key_without_a_file_is_told_with_the_reason(tmp_path: Path, key: str, reason: str) -> None:
    folder = Folder(tmp_path, {key: b"1", "data/a/b": b"2"})
    folder.mirror.fetch([ReadablePrefix("b", "*")])
    [(name, told)] = folder.mirror.unseen.items()
    assert name == f"b/{key}"
    assert reason in told

    del folder.bucket.objects[key]
    folder.mirror.pull()
    assert not folder.mirror.unseen


def test_a_key_that_finds_room_is_a_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"data/a": b"1", "data/a/b": b"2"})
    folder.mirror.fetch(EVERYTHING)
    del folder.bucket.objects["data/a/b"]
    folder.mirror.pull()
    folder.mirror.pull()
    assert folder.files() == {"data/a": "1"}
    assert not folder.mirror.unseen


def test_a_marker_is_an_empty_folder_that_goes_with_its_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"data/empty/": b"", "data/kept/": b"", "data/kept/x": b"1"})
    folder.mirror.fetch(EVERYTHING)
    assert (folder.root / "b/data/empty").is_dir()
    del folder.bucket.objects["data/kept/x"]
    folder.mirror.pull()
    assert (folder.root / "b/data/kept").is_dir()

    (folder.root / "b/data/empty").rmdir()
    del folder.bucket.objects["data/kept/"]
    folder.mirror.pull()
    folder.mirror.push(everything=True)
    assert not folder.bucket.objects
    assert not (folder.root / "b/data/kept").exists()


def test_drafts_that_s3_holds_are_objects(tmp_path: Path) -> None:
    """A run on AWS that was killed leaves them, and a job that removes their folder removes them."""
    folder = Folder(tmp_path, {"data/_temporary/0/part": b"1", "data/.spark-staging-1/part": b"1"})
    folder.mirror.fetch(EVERYTHING)
    folder.write("data/_temporary/1/part")
    (folder.root / "b/data/_temporary/0/part").unlink()
    folder.mirror.push(everything=True)
    assert set(folder.bucket.objects) == {"data/.spark-staging-1/part"}


@pytest.mark.parametrize("pattern", ["data/[x]/*", "data/[!a]?.csv"])
def test_brackets_of_a_policy_are_characters(tmp_path: Path, pattern: str) -> None:
    key = pattern.replace("*", "1").replace("?", "1")
    folder = Folder(tmp_path, {key: b"1", "data/x/1": b"2", "data/b1.csv": b"3"})
    folder.mirror.fetch([ReadablePrefix("b", pattern)])
    assert set(folder.files()) == {key}
    del folder.bucket.objects[key]
    folder.mirror.pull()
    assert not folder.files()
