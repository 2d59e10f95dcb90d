"""The stand-in refuses the paths that S3A could not open."""

from typing import Any

import pytest

from asya_local.emr.drivers.refused_paths import (
    RefusedPathError,
    UnseenObjectError,
    is_refused,
    refusing,
    unseen_object,
)

REFUSED = ["s3://b/clean", "s3://b/secret", "s3://b/secret/"]


class Reader:
    """A reader with some of the methods of Spark's."""

    def parquet(self, *paths: str, **options: Any) -> tuple[str, ...]:
        return paths

    def csv(self, path: str | list[str], **options: Any) -> str | list[str]:
        return path


class Writer:
    """A writer with some of the methods of Spark's."""

    def save(self, path: str | None = None, mode: str | None = None) -> str | None:
        return path


class Session:
    """The method of a session that takes SQL."""

    def sql(self, query: str, **arguments: Any) -> str:
        return query


class Context:
    """A method of a context that takes several paths in one text."""

    def textFile(self, name: str, minPartitions: int | None = None) -> str:  # noqa: N802, N803
        return name


@pytest.mark.parametrize(
    "path",
    ["s3://b/clean", "s3://b/clean/", "s3a://b/clean", "s3://b/secret", "s3://b/secret/x", "s3a://b/secret/x/y/"],
)
def test_refused(path: str) -> None:
    assert is_refused(path, REFUSED)


@pytest.mark.parametrize(
    "path", ["s3://b/clean/part", "s3://b/cleaner", "s3://c/clean", "s3://b/secrets", "clean", "file:///b/clean", ""]
)
def test_not_refused(path: str) -> None:
    assert not is_refused(path, REFUSED)


def test_readers_and_writers_are_refused_by_the_path() -> None:
    calls: list[Any] = [
        lambda: Reader().parquet("s3://b/clean/month=1", "s3://b/clean"),
        lambda: Reader().csv("s3://b/clean", header=True),
        lambda: Reader().csv(path=["s3://b/clean/"]),
        lambda: Writer().save("s3://b/secret/x", "overwrite"),
        lambda: Writer().save(path="s3://b/secret/x"),
    ]
    with refusing(REFUSED, Reader, Writer):
        for call in calls:
            with pytest.raises(RefusedPathError, match=r"getFileStatus on s3://b/.*: 403 Forbidden"):
                call()
        assert Reader().parquet("s3://b/clean/month=1") == ("s3://b/clean/month=1",)
        assert Writer().save() is None
    assert Reader().csv("s3://b/clean") == "s3://b/clean"


@pytest.mark.parametrize(
    "path", ["s3://b/other/x", "s3a://b/other", "s3://c/in/x", "s3://b/in", "s3://b/inn/x", "s3://b/"]
)
def test_paths_that_no_pattern_names_are_refused(path: str) -> None:
    with refusing([], Reader, readable=["s3://b/in/*", "s3://b/one-?.csv"]):
        if path == "s3://b/":  # no key, no HEAD
            assert Reader().csv(path) == path
            return
        with pytest.raises(RefusedPathError, match="The key `access` of an actor grants it"):
            Reader().csv(path)


@pytest.mark.parametrize(
    "path", ["s3://b/in/x", "s3a://b/in/x/y/", "s3://b/one-1.csv", "s3://b/other/*.csv", "file:///x", "x"]
)
def test_paths_that_a_pattern_names_are_not_refused(path: str) -> None:
    with refusing([], Reader, readable=["s3://b/in/*", "s3://b/one-?.csv"]):
        assert Reader().csv(path) == path


def test_the_next_job_in_a_driver_has_its_own_paths() -> None:
    with pytest.raises(ZeroDivisionError), refusing(REFUSED, Reader, Writer):
        raise ZeroDivisionError
    with refusing([], Reader, Writer):
        assert Reader().csv("s3://b/clean") == "s3://b/clean"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM parquet.`s3://b/clean`",
        "CREATE TABLE t USING csv LOCATION 's3a://b/secret/x'",
        "CREATE TEMP VIEW v USING csv OPTIONS (path 's3://b/clean/', header true)",
        'INSERT OVERWRITE DIRECTORY "s3://b/clean" USING parquet SELECT 1',
        "load data inpath 's3://b/secret/y' INTO TABLE t",
    ],
)
def test_paths_in_sql_are_refused(query: str) -> None:
    with refusing(REFUSED, Session), pytest.raises(RefusedPathError):
        Session().sql(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM parquet.`s3://b/clean/month=1`",
        "SELECT 's3://b/clean' AS origin",
        "SELECT path FROM t WHERE origin = 's3://b/secret/x'",
        "SELECT 1",
    ],
)
def test_other_sql_is_not_refused(query: str) -> None:
    with refusing(REFUSED, Session):
        assert Session().sql(query) == query


def test_each_path_of_an_rdd_is_checked() -> None:
    with refusing(REFUSED, Context):
        with pytest.raises(RefusedPathError):
            Context().textFile("s3://b/other,s3://b/clean", 2)
        with pytest.raises(RefusedPathError):
            Context().textFile(name="s3a://b/secret/x")
        assert Context().textFile("s3://b/other,s3://b/clean/part") == "s3://b/other,s3://b/clean/part"


UNSEEN = {"b/in//x": "a path has no empty part", "b/data/a": "it is also the folder of other objects"}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("s3://b/in", "b/in//x"),
        ("s3a://b/in/", "b/in//x"),
        ("s3://b/in//x", "b/in//x"),
        ("s3://b/in/*.csv", "b/in//x"),
        ("s3://b/{in,out}/x", "b/in//x"),
        ("s3://b", "b/in//x"),
        ("s3://b/data/a", "b/data/a"),
        ("s3://b/data", "b/data/a"),
        ("s3://b/in/x", None),
        ("s3://b/inner", None),
        ("s3://b/data/a/b", None),
        ("s3://b/data/ab", None),
        ("s3://bb/in", None),
        ("file:///b/in", None),
    ],
)
def test_an_unseen_object_is_found_at_its_path_and_in_its_folders(path: str, name: str | None) -> None:
    assert unseen_object(path, UNSEEN) == name


def test_the_error_of_an_unseen_object_names_it_and_the_reason() -> None:
    unseen: dict[str, str] = {}
    with refusing([], Reader, Writer, Session, unseen=unseen):
        assert Reader().csv("s3://b/in") == "s3://b/in"
        unseen.update(UNSEEN)
        with pytest.raises(
            UnseenObjectError, match=r"'s3://b/in//x' on the local cloud: a path has no empty part\. Read"
        ):
            Reader().csv("s3://b/in")
        with pytest.raises(UnseenObjectError):
            Writer().save("s3://b/data")
        with pytest.raises(UnseenObjectError):
            Session().sql("SELECT * FROM parquet.`s3://b/in`")
