"""Mesh file, `fair_by`: the tenant of a message; no header value blocks an envelope."""

import re
from typing import Any

import pytest
from hypothesis import given

from asya.function.sqs import queue_group
from asya.protocol.codec import decode
from asya.protocol.mesh_table import Actor
from tests.doubles.envelopes import message
from tests.unit.asya.protocol.test_codec import JSON

FAIR = Actor(kind="handler", fair_by="tenant")


def group(value: Any) -> str | None:
    return queue_group(decode(message(headers={"tenant": value})), FAIR)


@pytest.mark.parametrize(("value", "expected"), [("acme", "acme"), ("a-b.c:1", "a-b.c:1"), (None, None), ("", None)])
def test_the_headers_value_is_the_group(value: Any, expected: str | None) -> None:
    assert group(value) == expected


def test_without_the_header_or_the_setting_there_is_none() -> None:
    assert queue_group(decode(message(headers={})), FAIR) is None
    assert queue_group(decode(message()), Actor(kind="handler")) is None


@given(JSON)
def test_any_value_gives_a_group_that_sqs_takes(value: Any) -> None:
    tenant = group(value)
    assert tenant is None or re.fullmatch(r"[!-~]{1,128}", tenant)


def test_other_values_are_told_apart_by_their_digest() -> None:
    values = [42, 43, "two words", "größe", "x" * 129, {"a": 1}, True]
    assert len({group(value) for value in values}) == len(values)


OWNED = Actor(kind="handler", fair_by="owner")


@pytest.mark.rule("3.tenant")
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-asya-tenant": "AIDAEVE", "tenant": "alice", "owner": "alice"}, "AIDAEVE"),
        ({"x-asya-owner": "AROASENDER", "owner": "alice"}, "AROASENDER"),
        ({"x-asya-tenant": "claim:acme#https://id", "x-asya-owner": "AIDAEVE"}, "claim:acme#https://id"),
        ({"x-asya-tenant": "", "x-asya-owner": "AIDAEVE"}, "AIDAEVE"),
        ({"owner": "alice"}, None),
        ({}, None),
    ],
)
def test_3_fair_by_owner_goes_by_what_the_mesh_has_written(headers: dict[str, Any], expected: str | None) -> None:
    assert queue_group(decode(message(headers=headers)), OWNED) == expected


@pytest.mark.rule("3.tenant")
@given(JSON)
def test_3_any_subject_gives_a_group_that_sqs_takes(value: Any) -> None:
    tenant = queue_group(decode(message(headers={"x-asya-tenant": value})), OWNED)
    assert tenant is None or re.fullmatch(r"[!-~]{1,128}", tenant)
