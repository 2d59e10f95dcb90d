"""protocol §14: the responses of legacy runtimes, given by handlers."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.legacy.options import Responses
from asya.capabilities.legacy.responses import read_response
from asya.runtime.call import HandlerFailed
from tests.unit.asya.runtime.handler_calls import as_async, as_sync, payloads

ERROR = {"error": "validation_error", "message": "Missing required field: text"}
OK = {"status": "ok", "result": {"processed": True}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)
NEAR = st.sampled_from(
    [
        {**ERROR, "code": 7},
        {"error": "validation_error"},
        {"error": None, "message": "fine"},
        {"error": "x", "message": None},
        {"error": {"type": "x"}, "message": "y"},
        {**OK, "took": 3},
        {"status": "ok"},
        {"status": "OK", "result": 1},
        {"status": "error", "result": 1},
        [ERROR],
    ]
)


def always(value: Any) -> Any:
    return lambda _: value


def coroutine(value: Any) -> Any:
    async def handler(_: Any) -> Any:
        return value

    return handler


@pytest.mark.rule("14.responses")
@pytest.mark.parametrize("form", ["errors", "wrapped"])
@pytest.mark.parametrize("give", [always, coroutine, lambda value: as_sync([value]), lambda value: as_async([value])])
def test_an_error_response_is_a_failure_of_its_type(form: Responses, give: Any) -> None:
    with pytest.raises(HandlerFailed) as failed:
        payloads(give(ERROR), read_response=partial(read_response, form))
    assert (failed.value.error.type, failed.value.error.message) == tuple(ERROR.values())


@pytest.mark.rule("14.responses")
@pytest.mark.parametrize("give", [always, coroutine, lambda value: as_sync([value]), lambda value: as_async([value])])
@pytest.mark.parametrize(
    ("result", "given_payloads"), [({"processed": True}, [{"processed": True}]), (None, []), ([1, 2], [[1, 2]])]
)
def test_a_wrapped_result_is_the_payload(give: Any, result: Any, given_payloads: list[Any]) -> None:
    handler = give({"status": "ok", "result": result})
    assert payloads(handler, read_response=partial(read_response, "wrapped")) == given_payloads


@pytest.mark.rule("14.responses", "6.fan_out_lists")
def test_a_wrapped_list_fans_out_as_any_other() -> None:
    wrapped = partial(read_response, "wrapped")
    assert payloads(always({"status": "ok", "result": [1, 2]}), read_response=wrapped, lists_fan_out=True) == [1, 2]
    assert payloads(always({"status": "ok", "result": []}), read_response=wrapped, lists_fan_out=True) == []


@pytest.mark.slow
@pytest.mark.rule("14.responses")
@given(st.sampled_from(["errors", "wrapped"]), JSON | NEAR)
def test_every_other_value_is_a_payload(form: Responses, value: Any) -> None:
    assert read_response(form, value) is value


@pytest.mark.rule("14.responses", "6.error-like-dict")
@pytest.mark.parametrize(("form", "value"), [("plain", ERROR), ("plain", OK), ("errors", OK)])
def test_an_actor_that_asked_for_no_such_response_gives_payloads(form: Responses, value: Any) -> None:
    assert read_response(form, value) is value
