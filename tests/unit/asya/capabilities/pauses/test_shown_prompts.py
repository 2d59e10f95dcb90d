"""protocol §11: the values of the payload in the prompt of a pause."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from asya.capabilities.pauses.shown import VALUE_CHARACTERS, fill_in, prompt_problems

PAYLOAD = Raw(
    b'{"total": 3544790567247868102, "price": 12345678901234567.89, "customer": "ACME\\nInc",'
    b' "lines": [1, {"a": true}], "a/b": null}'
)


@pytest.mark.rule("11.pause.prompt")
@pytest.mark.parametrize(
    ("prompt", "question"),
    [
        ("Approve {/total} for {/customer}?", "Approve 3544790567247868102 for ACME Inc?"),
        ("{/price} {/lines} {/lines/1/a} {/a~1b}", '12345678901234567.89 [1, {"a": true}] true null'),
        ("{/nothing} {/lines/7} {/total/x}", "(missing) (missing) (missing)"),
        ("{{/total}} {{}}", "{/total} {}"),
        ("No value", "No value"),
        # Synthesis refuses these, so an older mesh has them at most.
        ("{} {x} {/a~7} { }", "{} {x} {/a~7} { }"),
    ],
)
def test_values_of_the_payload_stand_in_the_prompt(prompt: str, question: str) -> None:
    assert fill_in(prompt, PAYLOAD) == question


@pytest.mark.rule("11.pause.prompt")
def test_a_long_value_is_cut() -> None:
    payload = Raw(json.dumps({"text": "t" * 10_000, "list": list(range(10_000))}).encode())
    text, entries = fill_in("{/text}|{/list}", payload).split("|")
    assert text == "t" * VALUE_CHARACTERS + "…"
    assert (len(entries), entries[-1]) == (VALUE_CHARACTERS + 1, "…")


@given(st.text(), st.text())
def test_no_prompt_and_no_payload_fail(prompt: str, text: str) -> None:
    payload = Raw(json.dumps({"a": text, text: [text]}).encode("ascii", "ignore").replace(b"\\ud", b"\\u0"))
    question = fill_in(prompt, payload)
    if not list(prompt_problems(prompt)) and "{" not in prompt:
        assert question == prompt.replace("}}", "}")


@pytest.mark.rule("11.pause.prompt")
@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ("Approve {total}?", "'{total}' names no value of the payload: 'total' is not a JSON pointer"),
        ("Approve {}?", "'{}' names no value of the payload: a JSON pointer stands in it"),
        ('Answer {"a": 1}', "names no value of the payload"),
        ("Approve {?", "'{' stands alone; write '{{' for the character"),
        ("Approve }?", "'}' stands alone; write '}}' for the character"),
        ("{/a~2}", "'{/a~2}' names no value of the payload"),
        ("{/a}" * 21, "has 21 values of the payload; 20 at most"),
    ],
)
def test_wrong_templates_have_a_problem(prompt: str, problem: str) -> None:
    (found,) = prompt_problems(prompt)
    assert problem in found
