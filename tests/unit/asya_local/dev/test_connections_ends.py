"""What the author reads of ends."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.mesh_table import Actor, MeshTable, SparkJob
from asya.protocol.text import one_line
from asya_local.dev.connections import Ends

AT = "2026-11-25T04:00:00Z"
ERROR = {"type": "KeyError", "message": "'total'"}
TRACEBACK = "Traceback: line 6\nKeyError: 'total'\n"
JVM_TRACEBACK = "Traceback: line 6\nPythonException: KeyError\n  at org.apache.spark"


def told(*reports: dict[str, Any] | str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    ends = Ends(lambda level, text: found.append((level, text)))
    table = MeshTable(
        namespace="shop",
        actors={
            "bill": Actor(kind="handler", handler="orders.bill"),
            "count": Actor(kind="spark", spark=SparkJob(job="lines.count")),
        },
    )
    bodies = [each if isinstance(each, str) else json.dumps([{"at": AT, **each}]) for each in reports]
    ends.read({"Records": [{"body": body} for body in bodies]}, table)
    return found


@pytest.mark.parametrize(
    ("status", "data", "expected"),
    [
        ("succeeded", {"actor": "bill", "result": {}}, ("end", "e-1 succeeded at bill")),
        ("failed", {"actor": "bill", "error": ERROR}, ("error", "e-1 failed at bill: KeyError: 'total'")),
        ("failed", {"actor": "bill", "error": {**ERROR, "traceback": TRACEBACK}}, ("error", "e-1 failed at bill")),
        (
            "failed",
            {"actor": "count", "error": {**ERROR, "traceback": TRACEBACK}},
            ("error", "e-1 failed at count:\nTraceback: line 6\nKeyError: 'total'"),
        ),
        (
            "failed",
            {"actor": "count", "error": {**ERROR, "traceback": JVM_TRACEBACK}},
            ("error", f"e-1 failed at count: KeyError: 'total'\n{JVM_TRACEBACK}"),
        ),
        ("failed", {"actor": "bill", "reason": "DeliveryExhausted"}, ("end", "e-1 failed at bill: DeliveryExhausted")),
        (
            "paused",
            {"actor": "bill", "prompt": "Ship it?"},
            ("end", "e-1 paused at bill: asya resume e-1 --pause 2026-11-25T04:00:00.000000Z"),
        ),
    ],
)
def test_an_end_tells_what_the_author_has_not_read(
    status: str, data: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert told({"id": "e-1", "status": status, "data": data}) == [expected]


def test_an_end_is_told_once_and_in_each_generation() -> None:
    end = {"id": "e-1", "status": "succeeded", "data": {"actor": "bill"}}
    assert len(told(end, end, {**end, "generation": 1})) == 2


def test_what_is_no_end_is_not_told() -> None:
    processing = {"id": "e-1", "status": "processing", "data": {"actor": "bill", "attempt": 1}}
    assert told("not JSON", {"id": "e-1"}, processing) == []


TEXTS = st.lists(st.characters() | st.sampled_from("\r\n\t\x1b\x9b\u202e")).map("".join)


@given(
    name=TEXTS.filter(bool),
    status=st.sampled_from(["succeeded", "failed", "paused", "canceled"]),
    data=st.fixed_dictionaries(
        {},
        optional={"actor": TEXTS, "reason": TEXTS, "error": st.fixed_dictionaries({"type": TEXTS, "message": TEXTS})},
    ),
)
def test_an_end_is_one_line_whatever_its_id_its_actor_and_its_error_are(
    name: str, status: str, data: dict[str, Any]
) -> None:
    for _, text in told({"id": name, "status": status, "data": data}):
        assert text == one_line(text)
        assert one_line(name) in text
