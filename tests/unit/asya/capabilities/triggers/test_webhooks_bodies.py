"""What the body of a webhook tells."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from asya.capabilities.triggers.webhooks import UnreadableBodyError, read_body, type_of

FORM = "application/x-www-form-urlencoded"


@pytest.mark.rule("16.webhooks.payload")
@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; charset=utf-8", "application/a+json", ""]
)
def test_16_a_body_of_json_is_its_value(content_type: str) -> None:
    assert read_body('{"a": [1, "é"]}', content_type) == {"a": [1, "é"]}
    assert read_body("[1]", content_type) == [1]


@pytest.mark.rule("16.webhooks.payload")
def test_16_a_form_is_an_object() -> None:
    """A command of Slack is a form."""
    assert read_body("command=%2Fdeploy&text=a+b&empty=&x=1&x=2", f"{FORM}; charset=utf-8") == {
        "command": "/deploy", "text": "a b", "empty": "", "x": ["1", "2"],
    }  # fmt: skip
    assert read_body("", FORM) == {}


@pytest.mark.rule("16.webhooks.payload")
def test_16_a_form_with_json_in_its_only_field_is_that_json() -> None:
    """GitHub sends so by default, and Slack for buttons."""
    value = {"type": "block_actions", "user": "é"}
    assert read_body(urlencode({"payload": json.dumps(value)}), FORM) == value
    assert read_body(urlencode({"payload": "{"}), FORM) == {"payload": "{"}
    assert read_body(urlencode({"payload": "1", "more": "2"}), FORM) == {"payload": "1", "more": "2"}


@pytest.mark.rule("16.webhooks.payload")
def test_16_any_other_body_is_a_text() -> None:
    assert read_body("<a/>", "application/xml") == {"body": "<a/>"}
    assert read_body("", "text/plain") == {"body": ""}


@pytest.mark.rule("16.webhooks.payload")
@pytest.mark.parametrize(
    ("text", "content_type"),
    [
        ("{", "application/json"),
        ("", ""),
        ("[" * 100_000, "application/json"),
        ('{"a": NaN}', "application/json"),
        ("a=%ff", FORM),
        ("&".join(["a=1"] * 1001), FORM),
    ],
)
def test_16_a_body_of_another_form_than_its_type_is_unreadable(text: str, content_type: str) -> None:
    with pytest.raises(UnreadableBodyError):
        read_body(text, content_type)


@pytest.mark.rule("16.webhooks.payload")
@pytest.mark.parametrize(
    ("body", "found"), [({"type": "a.b"}, "a.b"), ({"type": 1}, ""), ({}, ""), ([], ""), ("type", "")]
)
def test_16_the_type_of_a_body_is_a_text(body: Any, found: str) -> None:
    assert type_of(body) == found
