"""Messages of S3 and EventBridge, and the occurrences that they tell of."""

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.triggers.messages import UnusableMessageError
from asya.capabilities.triggers.occurrences import Occurrence
from asya.capabilities.triggers.sources.new_objects import Buckets
from asya.capabilities.triggers.sources.service_messages import LAST_RECEIVE, read_service_message
from asya.function.hop import Arrival
from asya.function.nack import OutdatedError
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.triggers import EventSource, ObjectSource, Trigger

BUCKETS = Buckets("s3://own/data/", "s3://own/results/")
AT = "2026-11-25T10:00:00.123Z"


HOSTILE = (
    *(
        "a b+c%2Bd&e=f?g#h",
        "100%.csv",
        "a%20b",
        "%00",
        "%2e%2e%2f",
        "%E9",
        "../secret",
        "../../results/x",
        "/double",
        "./x",
    ),
    *(
        "{uri}",
        "{{key}}",
        "{",
        "}",
        "{key!r}",
        "$(id)`id`;rm",
        "new\nline",
        "\x1b[31m",
        "\u202e",
        "\ufffe",
        "\u2028",
        " ",
        ".",
    ),
)
"""Names that stand for something elsewhere: in a URL, a template, a shell, a path, a terminal."""


def mesh(**triggers: Trigger) -> MeshTable:
    return MeshTable(namespace="shop", actors={"count": Actor(kind="handler")}, triggers=triggers)


def objects(bucket: str = "data", prefix: str = "raw/", suffix: str = "", **more: Any) -> Trigger:
    source = ObjectSource(bucket=bucket, prefix=prefix, suffix=suffix)
    return Trigger(route=("count",), objects=source, **more)


def events(**more: Any) -> Trigger:
    return Trigger(route=("count",), event=EventSource(source=("shop",)), **more)


def notification(written_key: str, bucket: str = "own", name: str = "ObjectCreated:Put", **more: Any) -> dict[str, Any]:
    written = {"key": quote_plus(written_key, safe="/"), "size": 9, "eTag": "e", "sequencer": "00A", **more}
    s3 = {"s3SchemaVersion": "1.0", "bucket": {"name": bucket, "arn": "x"}, "object": written}
    return {"eventSource": "aws:s3", "eventName": name, "eventTime": AT, "s3": s3}


def event(**more: Any) -> dict[str, Any]:
    base = {"version": "0", "id": "6a7e8feb", "source": "shop", "detail-type": "OrderPlaced", "account": "1"}
    return {**base, "time": "2026-11-25T10:00:00Z", "detail": {"order": 7, "lines": [{"sku": "a/b"}]}, **more}


def created(key: str, bucket: str = "partner", **more: Any) -> dict[str, Any]:
    written = {"key": key, "size": 9, "etag": "e", "sequencer": "00A", **more}
    return event(source="aws.s3", detail={"bucket": {"name": bucket}, "object": written})


def read(message: Any, table: MeshTable, receive_count: int = 1) -> list[Occurrence] | None:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    arrival = Arrival(
        body=body,
        message_id="m",
        sent_at=datetime(2026, 11, 25, tzinfo=UTC),
        receive_count=receive_count,
        sender="AIDAOFAWS",
        size=len(body),
    )
    return read_service_message(arrival, table, BUCKETS)


def one(message: Any, table: MeshTable) -> Occurrence:
    found = read(message, table)
    assert found is not None
    [occurrence] = found
    return occurrence


def payload(occurrence: Occurrence) -> Any:
    return json.loads(bytes(occurrence.payload))


@pytest.mark.rule("16.objects", "16.objects.payload")
@given(name=st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(HOSTILE))
def test_16_a_notification_gives_the_key_as_it_is(name: str) -> None:
    """S3 encodes the keys of its notifications, and not those of its events. A key is a value, and no part of a template."""
    key = f"raw/{name}"
    filled = one({"Records": [notification(f"data/{key}")]}, mesh(landed=objects(payload={"{uri}": "at {key}"})))
    assert payload(filled) == {"{uri}": f"at {key}"}
    found = one({"Records": [notification(f"data/{key}")]}, mesh(landed=objects()))
    assert payload(found) == {
        "bucket": "data",
        "key": key,
        "uri": f"s3://own/data/{key}",
        "size": 9,
        "etag": "e",
        "sequencer": "00A",
    }
    assert found.key == f"object own/data/{key} 00A"
    assert (found.started_by.kind, found.started_by.name, found.started_by.slot) == ("trigger", "landed", None)


@pytest.mark.rule("16.objects.stem")
@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("sales-2026.01.csv", "sales-2026.01"),
        ("sales-2026.02.csv", "sales-2026.02"),
        ("sales.csv.gz", "sales.csv"),
        ("a.tar.gz", "a.tar"),
        ("README", "README"),
        (".env", ".env"),
        (".env.local", ".env"),
        ("notes.", "notes."),
        ("..csv", "..csv"),
        ("3.15.04\u202fPM.png", "3.15.04\u202fPM"),
    ],
)
def test_16_a_stem_lacks_the_last_suffix_alone(name: str, stem: str) -> None:
    template = {"name": "{name}", "stem": "{stem}"}
    [occurrence] = read({"Records": [notification(f"data/raw/{name}")]}, mesh(landed=objects(payload=template))) or []
    assert json.loads(bytes(occurrence.payload)) == {"name": name, "stem": stem}


@pytest.mark.rule("16.objects.folders")
@pytest.mark.parametrize("key", ["raw/", "raw/2026/", "raw/2026_$folder$"])
def test_16_the_marker_of_a_folder_starts_nothing(key: str) -> None:
    """An object with content starts a task, whatever its key."""
    table = mesh(landed=objects(), partner=objects(bucket="partner"))
    assert read({"Records": [notification(f"data/{key}", size=0)]}, table) == []
    assert read({"trigger": "partner", "event": created(key, size=0)}, table) == []
    assert len(read({"Records": [notification(f"data/{key}", size=1)]}, table) or []) == 1
    assert len(read({"Records": [notification("data/raw/empty.csv", size=0)]}, table) or []) == 1


@pytest.mark.rule("16.objects", "16.objects.existing")
def test_16_an_event_of_another_bucket_gives_the_same() -> None:
    table = mesh(partner=objects("partner", "in coming/", ".csv"))
    found = one({"trigger": "partner", "event": created("in coming/é+.csv")}, table)
    assert payload(found)["key"] == "in coming/é+.csv"
    assert payload(found)["uri"] == "s3://partner/in coming/é+.csv"
    assert read({"trigger": "partner", "event": created("in coming/a.json")}, table) == []
    assert read({"trigger": "partner", "event": created("in coming/a.csv", bucket="else")}, table) == []


@pytest.mark.rule("16.objects")
def test_16_each_version_and_each_write_of_a_key_is_an_occurrence_of_its_own() -> None:
    table = mesh(landed=objects())

    def key_of(**more: Any) -> str:
        return one({"Records": [notification("data/raw/a", **more)]}, table).key

    assert key_of(versionId="v1") == key_of(versionId="v1", sequencer="00B") == "object own/data/raw/a v1"
    assert key_of(versionId="v2") == "object own/data/raw/a v2"
    assert key_of(versionId="null") == key_of() == "object own/data/raw/a 00A"
    assert key_of(sequencer="00B") == "object own/data/raw/a 00B"
    assert payload(one({"Records": [notification("data/raw/a", versionId="v1")]}, table))["version_id"] == "v1"


@pytest.mark.rule("16.objects.each")
def test_16_an_object_is_an_occurrence_of_every_trigger_that_asks_for_it() -> None:
    table = mesh(
        all=objects(prefix=""),
        csv=objects(suffix=".csv"),
        json=objects(suffix=".json"),
        results=objects("results", prefix=""),
        off=objects(enabled=False),
    )
    found = read({"Records": [notification("data/raw/a.csv")]}, table)
    assert [each.trigger for each in found or []] == ["all", "csv", "off"]
    assert len({each.task_id for each in found or []}) == 3


@pytest.mark.rule("16.objects.payload")
def test_16_the_values_of_an_object_fill_in_the_template() -> None:
    template = {
        "from": "{bucket}:{key}",
        "out": "clean/{date}/{stem}.parquet",
        "more": ["{name}", "{uri}", "{size}", "{etag}", "{version}", "{time}", "{occurred_at}"],
    }
    found = one({"Records": [notification("data/raw/f.csv.gz")]}, mesh(landed=objects(payload=template)))
    assert payload(found) == {
        "from": "data:raw/f.csv.gz",
        "out": "clean/2026-11-25/f.csv.parquet",
        "more": ["f.csv.gz", "s3://own/data/raw/f.csv.gz", "9", "e", "", "10:00", "2026-11-25T10:00:00.123000Z"],
    }


@pytest.mark.rule("16.objects.notifications")
@pytest.mark.parametrize(
    "message",
    [
        {"Service": "Amazon S3", "Event": "s3:TestEvent", "Time": AT, "Bucket": "own", "RequestId": "r", "HostId": "h"},
        {"Records": []},
        {"Records": [notification("data/raw/a", name="ObjectRemoved:Delete")]},
        # The filter of the bucket has such keys, because two triggers share it.
        {"Records": [notification("data/raw/a.json")]},
    ],
)
def test_16_a_message_without_an_object_for_a_trigger_starts_nothing(message: Any) -> None:
    assert read(message, mesh(csv=objects(suffix=".csv"), deep=objects(prefix="raw/x/"))) == []


@pytest.mark.rule("16.objects.deployment")
@pytest.mark.parametrize(
    "message",
    [
        {"Records": [notification("data/new/a.csv")]},
        {"Records": [notification("raw/a.csv", bucket="another")]},
        {"trigger": "new", "event": event()},
        {"trigger": "nightly", "event": event()},
    ],
)
def test_16_a_message_of_another_deployment_waits_and_becomes_a_dead_letter(message: Any) -> None:
    """The bucket may notify of the keys of a new trigger before the function has it."""
    table = mesh(landed=objects(), nightly=Trigger(route=("count",), cron="0 2 * * *"))
    with pytest.raises(OutdatedError, match="no trigger"):
        read(message, table, LAST_RECEIVE - 1)
    with pytest.raises(UnusableMessageError, match="no trigger"):
        read(message, table, LAST_RECEIVE)


@pytest.mark.rule("16.events", "16.events.payload")
@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", event()),
        ("/detail", event()["detail"]),
        ("/detail/lines/0/sku", "a/b"),
        ("/detail/lines", [{"sku": "a/b"}]),
        ("/detail-type", "OrderPlaced"),
    ],
)
def test_16_the_part_of_an_event_that_the_input_names_is_the_payload(pointer: str, expected: Any) -> None:
    found = one({"trigger": "ordered", "event": event()}, mesh(ordered=events(input=pointer)))
    assert payload(found) == expected
    assert found.key == "event 6a7e8feb"


@pytest.mark.rule("16.events.payload")
def test_16_the_values_of_an_event_fill_in_the_template() -> None:
    template = {"all": "{id} {source} {detail-type} {account} {date} {time} {occurred_at}"}
    found = one({"trigger": "ordered", "event": event()}, mesh(ordered=events(payload=template)))
    assert payload(found) == {"all": "6a7e8feb shop OrderPlaced 1 2026-11-25 10:00 2026-11-25T10:00:00.000000Z"}


@pytest.mark.rule("16.events.payload", "16.failures")
@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"trigger": "ordered", "event": event(detail={})}, "there is no /detail/order in it: 'order' is missing"),
        ({"trigger": "ordered", "event": {"detail": {"order": 1}}}, "missing required field"),
        ({"trigger": "ordered", "event": event(id="")}, "the event has no id"),
        ({"trigger": "ordered", "event": event(time="now")}, "no RFC 3339 time"),
        ({"trigger": "ordered", "event": 7}, "Expected `object`"),
        ({"Records": 7}, "Expected `array`"),
        ({"Records": [{"eventName": "ObjectCreated:Put"}]}, "missing required field"),
        ({"Records": [notification("data/raw/a", sequencer="")]}, "neither a version nor a sequencer"),
        ({"Records": [notification("data/raw/a", key="data/raw/%FF")]}, "can't decode byte"),
    ],
)
def test_16_an_event_without_the_part_or_of_no_known_form_starts_nothing(message: Any, problem: str) -> None:
    with pytest.raises(UnusableMessageError, match=problem):
        read(message, mesh(ordered=events(input="/detail/order"), landed=objects()))


@pytest.mark.parametrize(
    "message", [{"trigger": "nightly", "slot": AT}, b"", b"[]", b"\xff", b"{", {"trigger": 1, "event": {}}, b"[" * 9999]
)
def test_messages_of_other_forms_are_left_to_others(message: Any) -> None:
    assert read(message, mesh(landed=objects())) is None


@pytest.mark.parametrize(("pointer", "document"), [("/0", []), ("/-", [1]), ("/01", [1, 2]), ("/a/b", {"a": "b"})])
def test_a_pointer_beyond_a_document_names_nothing(pointer: str, document: Any) -> None:
    message = {"trigger": "ordered", "event": event(detail=document)}
    with pytest.raises(UnusableMessageError, match="is missing"):
        read(message, mesh(ordered=events(input=f"/detail{pointer}")))
