"""Tests that the page of the gateway has every call as it is declared."""

import pytest

from asya.api_call import ApiCall
from asya.gateway.call_table import CALLS
from docs_site.reference.call_list import PAGE, with_calls

TEXT = PAGE.read_text(encoding="utf-8")
ROWS = TEXT.partition("## Calls")[2].partition("\n## ")[0]


def test_the_page_is_current() -> None:
    assert with_calls(TEXT) == TEXT, "run `make generated`"


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.route)
def test_each_call_has_a_row_that_says_whether_it_needs_a_signature(call: ApiCall) -> None:
    (row,) = (line for line in ROWS.splitlines() if line.startswith(f"| `{call.route}` |"))
    assert call.summary in row
    assert ("No signature." in row) == call.is_public
