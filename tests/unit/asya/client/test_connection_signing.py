"""Signatures of calls to the gateway."""

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.client.connection import signable


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://g/api/v1/mesh", "https://g/api/v1/mesh"),
        ("https://g/a%2Fb?error=no+such%20order", "https://g/a%2Fb?error=no%20such%20order"),
        ("https://g/it's(a)*%2fb", "https://g/it%27s%28a%29%2A%2Fb"),
        ("https://g/a?x=%7E*'(a)!&y=", "https://g/a?x=~%2A%27%28a%29%21&y="),
    ],
)
def test_a_query_is_encoded_as_the_signature_has_it(url: str, expected: str) -> None:
    assert signable(url) == expected


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_meaning_of_a_query_stays(text: str) -> None:
    url = signable(f"https://g/a?{urlencode({'error': text})}")
    assert parse_qsl(urlsplit(url).query, keep_blank_values=True) == [("error", text)]
    assert signable(url) == url
