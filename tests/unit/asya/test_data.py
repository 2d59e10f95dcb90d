"""The data library behaves alike on a bucket and on a folder."""

import json
import os
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from urllib.parse import quote_plus

import boto3
import pytest
from botocore.stub import Stubber
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from moto import mock_aws

import asya_spark.data
from asya import data
from asya.capabilities.triggers.sources.new_objects import Buckets
from asya.capabilities.triggers.sources.service_messages import read_service_message
from asya.function.hop import Arrival
from asya.protocol.data_references import check_prefix, is_below_bucket
from asya.protocol.mesh_table import MeshTable
from asya.protocol.triggers import ObjectSource, Trigger
from tests.doubles.s3_keys import any_key


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
        assume(is_below_bucket(prefix + key) and is_stored(prefix + key))
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


def is_uri(prefix):
    try:
        check_prefix(prefix)
    except ValueError:
        return True
    return False


def is_stored(key):
    """Whether the simulated S3 takes a key: to it, what follows three slashes is a host, and may be none that it takes."""
    return not key.startswith("///")


def is_echoed(store, text):
    """Whether the simulated S3 answers a list with this text: it writes control characters into XML, where S3 encodes them."""
    return store.startswith("file:") or text.isprintable()


def listed(prefix, **options):
    return [each.reference for each in data.list(prefix, **options)]


NAMES = [
    "/a", "raw/a b.csv", "raw/a+b.csv", "raw/a%20b.csv", "raw//a.csv", "raw/new\nline\r\t.csv", "raw/a", "raw/a/b.csv",
    "raw/a.csv", "raw/a-b/c.csv", "raw/é.csv", "raw/😀.csv", "raw/\ufffd.csv", "raw/*?.csv", "raw/../x.csv", "raw/.csv",
    "raw-2/a.csv", "raw", "rawer.csv", "RAW/a.csv", "raw/&<>\"'.csv", "raw/\x01.csv", "raw/" + "n" * 300,
    "raw/.draft-abcd_123", ".draft-12345678", ".asya-keys/a.csv", ".asya-keys",
]  # fmt: skip


@pytest.mark.rule("1.references.list", "1.references.list.order")
@pytest.mark.parametrize(
    "prefix", ["", "raw", "raw/", "raw/a", "raw/a/", "raw//", "raw/n", "/", "raw/*", "none/", "raw/é"]
)
def test_1_a_list_has_the_references_with_a_prefix_in_the_order_of_their_bytes(store, prefix):
    for name in NAMES:
        data.write(name, b"x")
    assert listed(prefix) == sorted((name for name in NAMES if name.startswith(prefix)), key=str.encode)


@pytest.mark.rule("1.references.list")
def test_1_what_is_listed_is_read_by_its_reference(store):
    bodies = {name: name.encode() for name in NAMES}
    for name, body in bodies.items():
        data.write(name, body)
    assert {each.reference: data.read(each.reference) for each in data.list("")} == bodies
    assert {each.reference: each.size for each in data.list("")} == {name: len(body) for name, body in bodies.items()}


@pytest.mark.rule("1.references.list")
@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(key=any_key(), cut=st.integers(0, 20))
def test_1_any_key_is_listed_by_its_beginnings(store, key, cut):
    prefix = store.removeprefix("s3://meshdata/") if store.startswith("s3:") else ""
    assume(is_below_bucket(prefix + key) and is_stored(prefix + key) and not key.endswith(("/", "_$folder$")))
    assume(is_echoed(store, key[:cut]) and not is_uri(key[:cut]))
    data._store().write(key, b"x", "")
    assert key in listed(key[:cut])


@pytest.mark.rule("1.references.list")
def test_1_a_list_ends_with_a_suffix(store):
    for name in ("raw/a.csv", "raw/b.csv.gz", "raw/c.CSV", "raw/d/e.csv"):
        data.write(name, b"")
    assert listed("raw/", suffix=".csv") == ["raw/a.csv", "raw/d/e.csv"]


@pytest.mark.rule("1.references.list.after")
def test_1_a_list_goes_on_after_each_of_its_references(store):
    for name in NAMES:
        data.write(name, b"x")
    whole = listed("raw")
    for number, name in enumerate(whole):
        if is_echoed(store, name):
            assert listed("raw", after=name) == whole[number + 1 :]
    assert listed("raw", after="A") == whole
    assert listed("raw", after="z") == []
    assert listed("raw", after="raw/b") == [name for name in whole if name > "raw/b"]  # it need not exist


@pytest.mark.rule("1.references.list.markers")
def test_1_a_list_leaves_out_folder_markers(store):
    data.write("raw/a.csv", b"x")
    for marker in ("raw/", "raw/b/", "raw/c_$folder$"):
        data._store().write(marker, b"", "")
    data._store().write("raw/d/", b"x", "")
    assert listed("raw/") == ["raw/a.csv", "raw/d/"]


@pytest.mark.rule("1.references.list")
def test_1_a_listed_file_says_its_size_and_the_time_of_its_change(store):
    data.write("raw/a.csv", b"1,2")
    [file] = data.list("raw/")
    assert isinstance(file, data.DataFile)
    assert (file.reference, file.size, file.changed_at.tzinfo, file.changed_at.microsecond) == ("raw/a.csv", 3, UTC, 0)
    with pytest.raises(FrozenInstanceError):
        file.size = 4


@pytest.mark.rule("1.references.list")
def test_1_an_empty_place_has_no_files(store):
    assert listed("") == listed("raw/") == []


@pytest.mark.rule("1.references.list")
def test_1_a_job_lists_what_a_handler_lists(store):
    for name in NAMES:
        data.write(name, b"x")
    options = {"suffix": ".csv", "after": "raw/a"}
    assert [*asya_spark.data.list("raw/", **options)] == [*data.list("raw/", **options)] != []


@pytest.mark.parametrize("prefix", ["s3://meshdata/raw/", None, b"raw/"])
def test_a_mistaken_prefix_is_refused_by_the_call(store, prefix):
    """Not by the first step of a loop, which may be far away."""
    with pytest.raises(ValueError, match="such as 'raw/'"):
        data.list(prefix)


@pytest.mark.rule("1.references.list.pages")
def test_1_a_list_takes_a_page_when_it_is_needed(monkeypatch):
    """Its memory is a page, however many files there are: no page is asked for before the one before it is used up."""
    monkeypatch.setenv("ASYA_DATA_URI", "s3://meshdata/data/")
    pages = Pages(size=1000, count=10**6)
    monkeypatch.setattr(data, "_s3", lambda: pages)
    files = data.list("raw/")
    assert pages.taken == 0
    assert [each.reference for each in islice(files, 1000)][-1] == "raw/00000999"
    assert pages.taken == 1
    assert next(files).reference == "raw/00001000"
    assert pages.taken == 2


class Pages:
    """The client of a bucket with many objects."""

    def __init__(self, size, count):
        self.size, self.count, self.taken = size, count, 0

    def get_paginator(self, action):
        assert action == "list_objects_v2"
        return self

    def paginate(self, **request):
        assert request == {"Bucket": "meshdata", "Prefix": "data/raw/"}
        at = datetime(2026, 1, 1, tzinfo=UTC)
        for start in range(0, self.count, self.size):
            self.taken += 1
            names = (f"data/raw/{number:08}" for number in range(start, start + self.size))
            yield {"Contents": [{"Key": name, "Size": 1, "LastModified": at} for name in names]}


@pytest.mark.rule("1.references.list.moment")
def test_1_files_that_change_during_a_list_disturb_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("ASYA_DATA_URI", f"file://{tmp_path}/")
    for name in ("a/1", "b/1", "b/2", "c/1", "d/1"):
        data.write(name, b"x")
    files = data.list("")
    seen = [next(files).reference]
    (tmp_path / "b" / "1").unlink()
    for left in ((tmp_path / "c" / "1").unlink, (tmp_path / "c").rmdir):
        left()
    data.write("e/1", b"x")
    seen += [each.reference for each in files]
    assert [name for name in seen if name in ("a/1", "b/2", "d/1")] == ["a/1", "b/2", "d/1"]
    assert len(seen) == len(set(seen))


def test_a_draft_of_a_file_is_not_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("ASYA_DATA_URI", f"file://{tmp_path}/")
    written = []
    replace = Path.replace

    def spy(draft, target):
        written.append(listed(""))
        return replace(draft, target)

    monkeypatch.setattr(Path, "replace", spy)
    data.write("a", b"x")
    data.write("b//c", b"x")
    assert written == [[], ["a"], ["a"]]
    assert listed("") == ["a", "b//c"]
    (tmp_path / os.fsdecode(b"\xff.csv")).write_bytes(b"x")  # no reference can name it
    (tmp_path / os.fsdecode(b"\xff")).mkdir()
    (tmp_path / os.fsdecode(b"\xff/c.csv")).write_bytes(b"x")
    assert listed("") == ["a", "b//c"]


@pytest.mark.rule("1.references.list.access")
@pytest.mark.parametrize(("prefix", "entry"), [("raw/", '"raw/*"'), ("", '"*"'), ('a"b/', r'"a\"b/*"')])
def test_1_a_list_without_permission_says_what_to_write_into_the_mesh_file(monkeypatch, prefix, entry):
    monkeypatch.setenv("ASYA_DATA_URI", "s3://meshdata/data/")
    client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="testing", aws_secret_access_key="testing")
    monkeypatch.setattr(data, "_s3", lambda: client)
    with Stubber(client) as answers:
        answers.add_client_error("list_objects_v2", "AccessDenied", http_status_code=403)
        with pytest.raises(PermissionError) as caught:
            next(data.list(prefix))
    assert f"may not list {prefix!r}" in str(caught.value)
    assert f"access: [{{bucket: data, read: {entry}}}]" in str(caught.value)
