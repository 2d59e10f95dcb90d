"""Tests how the texts of calls are read from the source."""

import ast

import pytest

from docs_site.reference.source import texts


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'a'", ["a"]),
        ("f'{count} of {len(all)} a'", ["{count} of {len(all)} a"]),
        ("'a' if b else 'c'", ["a", "c"]),
        ("TABLE[why]", ["x", "y"]),
        ("'a ' + 'b'", ["a b"]),
        ("unknown", []),
    ],
)
def test_the_texts_of_an_expression(expression: str, expected: list[str]) -> None:
    tree = ast.parse("TABLE = {'a': 'x', 'b': 'y'}")
    assert texts(ast.parse(expression, mode="eval").body, tree) == expected
