"""The stand-in refuses the paths that S3A could not open."""

from typing import Any

import pytest

from asya_local.emr.drivers.refused_paths import RefusedPathError, is_refused, refusing

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


def test_the_next_job_in_a_driver_has_its_own_paths() -> None:
    with pytest.raises(ZeroDivisionError), refusing(REFUSED, Reader, Writer):
        raise ZeroDivisionError
    with refusing([], Reader, Writer):
        assert Reader().csv("s3://b/clean") == "s3://b/clean"
