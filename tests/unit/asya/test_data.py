"""The data library behaves alike on a bucket and on a folder."""

import json
from datetime import UTC, datetime
from urllib.parse import quote_plus

import boto3
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from asya import data
from asya.capabilities.triggers.sources.new_objects import Buckets
from asya.capabilities.triggers.sources.service_messages import read_service_message
from asya.function.hop import Arrival
from asya.protocol.data_references import is_below_bucket
from asya.protocol.mesh_table import MeshTable
from asya.protocol.triggers import ObjectSource, Trigger
from tests.doubles.s3_keys import any_key


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


@pytest.mark.slow
def test_open_streams(store):
    data.write("lines", b"one\ntwo\n" * 100_000)
    with data.open("lines") as body:
        assert body.readline() == b"one\n"
        assert body.read(3) == b"two"


@pytest.mark.parametrize("act", [data.size, data.read, data.open])
def test_a_missing_file_is_named(store, act):
    with pytest.raises(FileNotFoundError, match=r"file 'raw/none\.csv' does not exist"):
        act("raw/none.csv")


@pytest.mark.parametrize("act", [data.size, data.read, data.open])
@pytest.mark.parametrize("reference", ["../secret", "a/../../secret", "/secret", "..", "./../secret"])
def test_nothing_outside_the_prefix_is_reached(store, tmp_path, monkeypatch, act, reference):
    """These are names below the prefix, which nobody has written; no path is made of them."""
    if store.startswith("file:"):
        monkeypatch.setenv("ASYA_DATA_URI", f"file://{tmp_path}/data/")
        (tmp_path / "secret").write_bytes(b"secret")
    else:
        boto3.client("s3").put_object(Bucket="meshdata", Key="secret", Body=b"secret")
    with pytest.raises((FileNotFoundError, ValueError)):
        act(reference)


@pytest.mark.rule("1.references.paths")
@pytest.mark.parametrize("reference", ["../results/x", "/x", "a//b", "a/./b", "s3://other/x"])
def test_1_a_uri_that_libraries_would_read_otherwise_is_refused(store, reference):
    with pytest.raises(ValueError, match="is not a reference"):
        data.uri(reference)


@pytest.mark.rule("1.references.write")
@pytest.mark.parametrize("reference", ["raw/", "s3://meshdata/data/x", "file:///x"])
def test_1_nothing_is_written_under_a_mistaken_name(store, reference):
    with pytest.raises(ValueError, match=r"names a folder|is a URI"):
        data.write(reference, b"")


@pytest.mark.parametrize("act", [data.size, data.read])
def test_a_folder_is_no_file(store, act):
    for kind in (ValueError, FileNotFoundError):
        with pytest.raises(kind, match="names a folder"):
            act("raw/")


@pytest.mark.rule("1.references")
def test_1_a_file_and_a_folder_may_have_one_name(store):
    data.write("a", b"file")
    data.write("a/b", b"below")
    data.write("c/d", b"below")
    data.write("c", b"file")
    assert [data.read(each) for each in ("a", "a/b", "c/d", "c")] == [b"file", b"below", b"below", b"file"]


@pytest.mark.rule("1.references")
def test_1_keys_that_paths_take_for_one_are_three_files(store):
    names = ["a/b", "a//b", "a/./b", "/a/b", "c/../a/b", "A/b", "a/b "]
    for number, name in enumerate(names):
        data.write(name, bytes([number]))
    assert [data.read(name) for name in names] == [bytes([number]) for number in range(len(names))]


@pytest.mark.rule("1.references")
def test_1_a_key_has_1024_bytes_with_its_prefix(monkeypatch):
    monkeypatch.setenv("ASYA_DATA_URI", "s3://meshdata/data/")
    with pytest.raises(ValueError, match="the key has 1025 bytes; S3 allows 1024"):
        data.size("x" * 1020)
    with pytest.raises(ValueError, match="lead above the bucket"):
        data.size("../../x")


@pytest.mark.rule("1.references", "16.objects", "16.objects.notifications")
@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(key=any_key(), is_notified=st.booleans())
def test_1_any_key_goes_from_the_trigger_to_data_read(store, key, is_notified):
    """S3 tells of an object, and the handler reads it by the key in its payload, through JSON and back."""
    is_folder = key.endswith(("/", "_$folder$"))
    body = key.encode()
    if store.startswith("file:"):
        assume(not is_folder)
        data._store().write(key, body, "")
    else:
        prefix = store.removeprefix("s3://meshdata/")
        assume(is_below_bucket(prefix + key))
        boto3.client("s3").put_object(Bucket="meshdata", Key=prefix + key, Body=body)
    [told] = told_of(store, key, len(body), is_notified=is_notified)
    payload = json.loads(bytes(told.payload))
    assert payload["key"] == key
    assert (data.size(payload["key"]), data.read(payload["key"])) == (len(body), body)


def told_of(store, key, size, *, is_notified):
    """The occurrences of an object in the data, as a notification or an event of EventBridge tells of it."""
    base = store if store.startswith("s3:") else "s3://meshdata/data/"
    bucket, _, prefix = base.removeprefix("s3://").partition("/")
    written = {"size": size, "sequencer": "1"}
    if is_notified:
        s3 = {"bucket": {"name": bucket}, "object": written | {"key": quote_plus(prefix + key)}}
        message = {"Records": [{"eventName": "ObjectCreated:Put", "eventTime": "2026-11-25T10:00:00Z", "s3": s3}]}
    else:
        detail = {"bucket": {"name": bucket}, "object": written | {"key": prefix + key}}
        message = {"trigger": "landed", "event": {"time": "2026-11-25T10:00:00Z", "detail": detail}}
    body = json.dumps(message).encode()
    arrival = Arrival(
        body=body,
        message_id="m",
        sent_at=datetime(2026, 11, 25, tzinfo=UTC),
        receive_count=1,
        sender="",
        size=len(body),
    )
    trigger = Trigger(route=("count",), objects=ObjectSource(bucket="data"))
    mesh = MeshTable(namespace="shop", actors={}, triggers={"landed": trigger})
    return read_service_message(arrival, mesh, Buckets(base, "s3://other/results/"))


@pytest.mark.slow
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
