"""The calls that capabilities declare."""

from typing import Any, get_args, get_origin

import pytest

from asya.api_call import ApiCall, Named
from asya.gateway.call_table import CALLS
from asya.gateway.calls import CALLBACKS, WEBHOOK_CALL
from asya.gateway.calls import CALLS as LISTED
from asya.gateway.lambdas.call_descriptions import CALL_DESCRIPTIONS

GROUPS = ("tasks", "tools", "mcp", "a2a", "streams")


def loaded(template: Any) -> Any:
    match template:
        case Named():
            value = template.load()
            return (
                list(get_args(value))
                if get_origin(value) is not None
                else list(value)
                if isinstance(value, tuple)
                else value
            )
        case dict():
            return {key: loaded(each) for key, each in template.items()}
        case list() | tuple():
            return [loaded(each) for each in template]
    return template


def test_the_declared_calls_are_those_of_the_list() -> None:
    declared = {call.route: call for call in CALLS}
    assert declared.keys() == {call.route for call in (*LISTED, WEBHOOK_CALL)}
    for listed in (*LISTED, WEBHOOK_CALL):
        call = declared[listed.route]
        assert (call.function, call.is_public, call.route_keys) == (
            listed.function,
            listed.is_public,
            listed.route_keys,
        )
        for group in GROUPS:
            assert call.takes_tokens((group,)) == listed.takes_tokens((group,))
        is_for_tokens = listed.route not in CALLBACKS and (listed.is_public or listed.takes_tokens(GROUPS))
        assert call.is_for_tokens(GROUPS) == (is_for_tokens and listed is not WEBHOOK_CALL)


@pytest.mark.parametrize("route", CALL_DESCRIPTIONS)
def test_the_declared_calls_are_described_as_in_the_list(route: str) -> None:
    call, old = next(call for call in CALLS if call.route == route), CALL_DESCRIPTIONS[route]
    assert (call.summary, call.errors, call.streamed) == (old.summary, old.errors, old.streamed)
    assert (loaded(call.body), loaded(dict(call.answers))) == (loaded(old.body), loaded(dict(old.responses)))
    assert (loaded(dict(call.query)), loaded(dict(call.headers))) == (
        loaded(dict(old.query)),
        loaded(dict(old.headers)),
    )
    assert call.needs_body == old.is_body_required


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.route)
def test_the_summary_of_a_call_for_operators_says_so(call: ApiCall) -> None:
    assert ("; for operators" in call.summary) == (call.rights == "operators")
