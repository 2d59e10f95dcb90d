"""Tests that the page has each call of the gateway and each type of its OpenAPI document."""

from asya.gateway.call_table import CALLS
from docs_site.reference.gateway_calls import openapi, page

LINES = page().splitlines()


def test_each_call_has_a_section() -> None:
    documented = [call for call in CALLS if call.audience != "other systems"]
    assert [call.route for call in documented if f"## {call.route}" not in LINES] == []


def test_each_type_has_a_section() -> None:
    assert [name for name in openapi()["components"]["schemas"] if f"## {name}" not in LINES] == []


def test_a_call_that_needs_no_signature_says_so() -> None:
    start = LINES.index("## GET /health")
    assert LINES[start + 2].endswith("Needs no signature.")
