"""protocol §11: the answers of a resume are checked against the fields of the pause."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from asya.capabilities.pauses.resume_input import InvalidInputError, complete_answers, merge_answers, read_request
from asya.protocol.api_errors import ApiError
from asya.protocol.pause import PauseField
from tests.doubles.envelopes import raw


def field(kind: Any, **more: Any) -> PauseField:
    return PauseField(name="it", type=kind, **more)


def answers(**values: Any) -> dict[str, Raw]:
    return {name: raw(value) for name, value in values.items()}


def plain(found: dict[str, Raw]) -> dict[str, Any]:
    return {name: msgspec.json.decode(value) for name, value in found.items()}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("string", ""), ("string", "x"), ("number", 0), ("number", 1.5), ("number", -(10**30))),
        *(("boolean", False), ("array", []), ("array", [1, "x"]), ("object", {}), ("object", {"a": None})),
    ],
)
def test_each_type_takes_its_values(kind: str, value: Any) -> None:
    assert plain(complete_answers([field(kind)], answers(it=value))) == {"it": value}


@pytest.mark.rule("11.resume.input")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("string", 1), ("string", None), ("number", "1"), ("number", True), ("boolean", 1), ("boolean", "true")),
        *(("array", {}), ("array", "ab"), ("object", []), ("object", None)),
    ],
)
def test_and_no_others(kind: str, value: Any) -> None:
    with pytest.raises(InvalidInputError) as invalid:
        complete_answers([field(kind)], answers(it=value))
    assert (invalid.value.status, set(invalid.value.fields)) == (422, {"it"})


@pytest.mark.rule("11.resume.input")
def test_what_is_not_asked_for_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="colour: is not asked for; the fields are it"):
        complete_answers([field("string")], answers(it="x", colour="red"))


def test_what_is_missing_is_asked_for_again_unless_it_is_optional() -> None:
    with pytest.raises(InvalidInputError, match=r"it: is missing: Go on\?"):
        complete_answers([field("boolean", prompt="Go on?")], {})
    assert complete_answers([field("boolean", required=False)], {}) == {}


@pytest.mark.parametrize("required", [True, False])
def test_a_default_stands_in(required: bool) -> None:
    asked = [field("string", default="é", required=required)]
    assert plain(complete_answers(asked, {})) == {"it": "é"}
    assert plain(complete_answers(asked, answers(it="x"))) == {"it": "x"}


def test_options_are_the_only_answers() -> None:
    asked = [field("number", options=(1, 2.5))]
    assert plain(complete_answers(asked, answers(it=2.5))) == {"it": 2.5}
    with pytest.raises(InvalidInputError, match=r"should be one of 1, 2\.5; not 3"):
        complete_answers(asked, answers(it=3))


def test_of_a_list_each_entry_is_one_of_the_options() -> None:
    asked = [field("array", options=("a", "b", True))]
    assert plain(complete_answers(asked, answers(it=["b", "a"]))) == {"it": ["b", "a"]}
    with pytest.raises(InvalidInputError, match='not "c"'):
        complete_answers(asked, answers(it=["a", "c"]))
    with pytest.raises(InvalidInputError, match="not 1"):
        complete_answers(asked, answers(it=[1]))


@pytest.mark.rule("11.resume.input")
def test_every_mistake_is_told_at_once() -> None:
    asked = [PauseField(name="a", type="string"), PauseField(name="b", type="number")]
    with pytest.raises(InvalidInputError) as invalid:
        complete_answers(asked, answers(b="x", c=1))
    assert set(invalid.value.fields) == {"a", "b", "c"}


def test_without_fields_everything_is_taken() -> None:
    assert plain(complete_answers([], answers(x=1, y=[2]))) == {"x": 1, "y": [2]}


@pytest.mark.rule("11.resume.merge")
def test_an_answer_goes_where_its_pointer_says() -> None:
    fields = [field("string", payload_key="/a/b~1c"), PauseField(name="x/y", type="number")]
    payload = merge_answers(Raw(b'{"a":{"k":1}}'), fields, {"it": raw("v"), "x/y": raw(2)})
    assert msgspec.json.decode(payload) == {"a": {"k": 1, "b/c": "v"}, "x/y": 2}


@pytest.mark.rule("11.resume.input")
def test_without_fields_the_input_is_merged_at_the_root() -> None:
    payload = merge_answers(Raw(b'{"a":1,"b":2}'), [], answers(b=3, c=4))
    assert msgspec.json.decode(payload) == {"a": 1, "b": 3, "c": 4}
    assert msgspec.json.decode(merge_answers(Raw(b"null"), [], answers(c=4))) == {"c": 4}


@pytest.mark.parametrize("payload", [b"[1,2]", b'"text"', b"7"])
def test_where_there_is_no_room_the_field_is_named(payload: bytes) -> None:
    with pytest.raises(InvalidInputError) as invalid:
        merge_answers(Raw(payload), [], answers(c=4))
    assert set(invalid.value.fields) == {"c"}


def test_the_request() -> None:
    assert plain(read_request(b'{"input": {"a": 1}}')) == {"a": 1}
    assert read_request(b"") == read_request(b"{}") == {}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"input": [1]}', "invalid_field"),
        (b'{"input": null}', "invalid_field"),
        (b'{"answers": {}}', "invalid_field"),
        (b"[]", "invalid_field"),
        (b"{", "invalid_json"),
        (b'{"input": {"a": NaN}}', "invalid_json"),
        (b'{"input": {"a": 1e999}}', "invalid_field"),
        (b'{"input": {"a": "\xff"}}', "invalid_json"),
    ],
)
def test_what_is_no_request_is_refused(body: bytes, code: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_request(body)
    assert (refused.value.status, refused.value.code) == (400, code)
