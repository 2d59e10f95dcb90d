"""The data library behaves alike on a bucket and on a folder."""

import json

import boto3
import pytest
from moto import mock_aws

from asya import data


@pytest.fixture(params=["s3://meshdata/data/", "s3://meshdata", "folder"])
def store(request, tmp_path, monkeypatch):
    if request.param == "folder":
        monkeypatch.setenv("ASYA_DATA_URI", f"file://{tmp_path}/")
        yield f"file://{tmp_path}/"
        return
    monkeypatch.setenv("ASYA_DATA_URI", request.param)
    for variable, value in {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }.items():
        monkeypatch.setenv(variable, value)
    with mock_aws():
        data._s3.cache_clear()
        boto3.client("s3").create_bucket(Bucket="meshdata")
        yield request.param.rstrip("/") + "/"
    data._s3.cache_clear()


def test_what_is_written_is_read(store):
    body = bytes(range(256)) * 40
    assert data.write("reports/a.html", body, "text/html") == "reports/a.html"
    assert data.size("reports/a.html") == len(body)
    assert data.read("reports/a.html") == body


def test_a_uri_is_the_data_uri_and_the_reference(store):
    assert data.uri("clean/x y/%2F") == f"{store}clean/x y/%2F"
    assert data.uri("scratch/1/") == f"{store}scratch/1/"


def test_writing_again_replaces(store):
    data.write("a", b"long body")
    data.write("a", b"short")
    assert data.read("a") == b"short"


def test_open_streams(store):
    data.write("lines", b"one\ntwo\n" * 100_000)
    with data.open("lines") as body:
        assert body.readline() == b"one\n"
        assert body.read(3) == b"two"


@pytest.mark.parametrize("act", [data.size, data.read, data.open])
def test_a_missing_file_is_named(store, act):
    with pytest.raises(FileNotFoundError, match=r"file 'raw/none\.csv' does not exist"):
        act("raw/none.csv")


@pytest.mark.parametrize("act", [data.uri, data.size, data.read, data.open, lambda r: data.write(r, b"")])
def test_nothing_outside_the_prefix_is_reached(store, act):
    with pytest.raises(ValueError, match="is not a reference"):
        act("../results/x")


@pytest.mark.parametrize("act", [data.size, data.read, lambda r: data.write(r, b"")])
def test_a_folder_is_no_file(store, act):
    with pytest.raises(ValueError, match="names a folder"):
        act("raw/")


def test_the_content_type_is_kept(monkeypatch):
    monkeypatch.setenv("ASYA_DATA_URI", "s3://meshdata/data/")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        data._s3.cache_clear()
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket="meshdata")
        data.write("r.html", b"<p>", "text/html; charset=utf-8")
        assert s3.head_object(Bucket="meshdata", Key="data/r.html")["ContentType"] == "text/html; charset=utf-8"
    data._s3.cache_clear()


@mock_aws
def test_without_permission_the_error_names_the_access_to_check(monkeypatch):
    """A bucket policy denies everything, as for an actor without `access`."""
    monkeypatch.setenv("ASYA_DATA_URI", "s3://meshdata/data/")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    data._s3.cache_clear()
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="meshdata")
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::meshdata/*"}
    s3.put_bucket_policy(Bucket="meshdata", Policy=json.dumps({"Version": "2012-10-17", "Statement": [deny]}))
    for act in (data.size, data.read):
        with pytest.raises(PermissionError, match=r"may not read 'secret'.*`access`"):
            act("secret")
    data._s3.cache_clear()


@pytest.mark.parametrize(("base", "error"), [("", RuntimeError), ("http://x/y", ValueError), ("s3:///x", ValueError)])
def test_an_unusable_data_uri_is_named(monkeypatch, base, error):
    monkeypatch.setenv("ASYA_DATA_URI", base)
    with pytest.raises(error, match="ASYA_DATA_URI"):
        data.size("a")
