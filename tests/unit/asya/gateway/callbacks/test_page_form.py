"""protocol §11: the answers in a form."""

import re
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.a2a.tool_requests import MessageContent, read_answers
from asya.capabilities.pauses.resume_input import InvalidInputError, complete_answers
from asya.gateway.callbacks.page import read_form, values_of
from asya.protocol.api_errors import ApiError
from asya.protocol.pause import PauseField
from tests.doubles.json_numbers import NUMBERS, are_equal

FIELDS = (
    PauseField(name="text", type="string", required=False),
    PauseField(name="count", type="number", required=False),
    PauseField(name="sure", type="boolean", required=False),
    PauseField(name="channel", type="string", options=("web", "mail"), default="web"),
    PauseField(name="tags", type="array", options=("a", 2), required=False),
    PauseField(name="more", type="object", required=False),
)


def answers(*pairs: tuple[str, str]) -> dict[str, object]:
    found = read_form(urlencode(pairs).encode(), FIELDS)
    return {name: msgspec.json.decode(raw) for name, raw in found.items()}


@pytest.mark.rule("11.callback.post")
def test_each_field_has_a_value_of_its_type() -> None:
    assert answers(
        ("text", "12"), ("count", "1.5"), ("sure", "false"), ("channel", '"mail"'), ("tags", '"a"'), ("tags", "2"),
        ("more", '{"x": [1]}'),
    ) == {"text": "12", "count": 1.5, "sure": False, "channel": "mail", "tags": ["a", 2], "more": {"x": [1]}}  # fmt: skip


@pytest.mark.rule("1.numbers")
@given(NUMBERS)
@pytest.mark.slow
def test_1_numbers_of_a_form_and_of_a_message_keep_their_digits(text: str) -> None:
    total, more = PauseField(name="total", type="number"), PauseField(name="more", type="object")
    form = read_form(urlencode({"total": text, "more": f'{{"n": [{text}]}}'}).encode(), (total, more))
    said = read_answers(MessageContent(None, {}, f" {text} "), [total])

    for answer in (form["total"], form["more"], said["total"]):
        (seen,) = re.findall(r"[-+.0-9eE]+", bytes(answer).decode())
        assert are_equal(seen, text)


@pytest.mark.rule("11.callback.post")
def test_an_empty_value_is_no_answer() -> None:
    assert answers(("text", ""), ("count", ""), ("sure", "true")) == {"sure": True}
    assert read_form(b"", FIELDS) == {}


@pytest.mark.rule("11.callback.post")
def test_boxes_without_a_tick_are_no_default() -> None:
    """Somebody has removed the ticks of the default. Without a default, an empty value is no answer."""
    regions = PauseField(name="regions", type="array", options=("north", "south"), default=["north", "south"])
    assert {name: bytes(raw) for name, raw in read_form(b"regions=", [regions]).items()} == {"regions": b"[]"}
    assert bytes(read_form(b"regions=&regions=%22south%22", [regions])["regions"]) == b'["south"]'
    assert answers(("tags", ""), ("tags", "2")) == {"tags": [2]}
    assert answers(("tags", "")) == {}


@pytest.mark.rule("11.callback.post")
def test_a_wrong_value_is_named_by_the_check_of_answers() -> None:
    found = read_form(urlencode({"count": "many", "sure": "perhaps", "other": "1"}).encode(), FIELDS)
    with pytest.raises(InvalidInputError) as caught:
        complete_answers(FIELDS, found)
    assert caught.value.fields.keys() == {"count", "sure", "other"}


@pytest.mark.parametrize("body", [b"\xff=1", b"&".join(b"a=1" for _ in range(1_001)), b"nothing"])
def test_what_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(ApiError, match="the body is no form"):
        read_form(body, FIELDS)


@given(st.binary(max_size=200))
def test_no_body_raises_another_error(body: bytes) -> None:
    values_of(body)
    try:
        found = read_form(body, FIELDS)
    except ApiError:
        return
    assert all(msgspec.json.decode(raw) is not ... for raw in found.values())
