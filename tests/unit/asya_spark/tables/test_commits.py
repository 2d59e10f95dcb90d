"""Files that are written once (`protocol §10.append-once`)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from asya_spark.tables.commits import Commits, LocalCommits, S3Commits, commits_for


@pytest.fixture(params=["s3", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Commits, str]]:
    """Commits, and the URI of one."""
    if request.param == "file":
        yield LocalCommits(), f"file://{tmp_path}/with%20space/_asya/commits/a.json"
        return
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="shop")
        yield S3Commits(client), "s3://shop/tables/_asya/commits/a.json"


@pytest.mark.rule("10.append-once")
def test_the_first_content_stays(place: tuple[Commits, str]) -> None:
    commits, uri = place
    assert commits.read(uri) is None
    assert commits.create(uri, b"first")
    assert not commits.create(uri, b"second")
    assert commits.read(uri) == b"first"


@pytest.mark.rule("10.tables.records")
def test_the_marker_of_a_folder_is_no_file(place: tuple[Commits, str]) -> None:
    """A table would refuse it as a record that no call has written."""
    commits, uri = place
    folder = uri.rpartition("/")[0]
    if isinstance(commits, S3Commits):
        commits._s3.put_object(Bucket="shop", Key="tables/_asya/commits/")
    assert commits.names(folder) == []
    commits.create(uri, b"x")
    assert commits.names(folder) == ["a.json"]


def test_of_many_at_the_same_time_one_writes(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/a.json"
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: LocalCommits().create(uri, b"%d" % number), range(100)))
    assert answers.count(True) == 1
    assert LocalCommits().read(uri) == b"%d" % answers.index(True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


class AnsweringS3:
    """S3 whose first answer to a write is an error, whether it wrote or not."""

    def __init__(self, client: Any, code: str, *, writes: bool) -> None:
        self._client = client
        self._codes = [code]
        self._writes = writes
        self.exceptions = client.exceptions
        self.get_object = client.get_object

    def put_object(self, **request: Any) -> Any:
        if not self._codes:
            return self._client.put_object(**request)
        if self._writes:
            self._client.put_object(**request)
        raise ClientError({"Error": {"Code": self._codes.pop()}}, "PutObject")


@pytest.mark.parametrize(("code", "writes"), [("PreconditionFailed", True), ("ConditionalRequestConflict", False)])
def test_an_own_write_that_got_another_answer_counts(code: str, writes: bool) -> None:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="shop")
        commits = S3Commits(AnsweringS3(client, code, writes=writes))
        assert commits.create("s3://shop/a.json", b"own")
        assert commits.read("s3://shop/a.json") == b"own"


def test_what_s3_refuses_for_another_reason_is_raised() -> None:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        with pytest.raises(ClientError, match="AccessDenied"):
            S3Commits(AnsweringS3(client, "AccessDenied", writes=False)).create("s3://shop/a.json", b"own")


def test_the_scheme_chooses(tmp_path: Path) -> None:
    assert isinstance(commits_for(f"file://{tmp_path}"), LocalCommits)
    with pytest.raises(ValueError, match="a table needs s3://"):
        commits_for("tables/clean")
