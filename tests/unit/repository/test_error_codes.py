"""protocol §13, errors: the tables name each code that the gateway answers with."""

import ast
import re
from collections.abc import Iterator

import pytest

from asya.protocol.api_errors import ERROR_CODES
from tests.paths import PROJECT

ROW = re.compile(r"^\| (\d[^|]*) \| ([^|]*) \|$", re.MULTILINE)


def answered() -> Iterator[tuple[int, str]]:
    """Status and code of each error that the source names by literals."""
    sources = (path.read_text() for path in (PROJECT / "functions" / "asya").rglob("*.py"))
    for source in sources:
        for node in ast.walk(ast.parse(source)) if "ApiError(" in source else ():
            match node:
                case ast.Call(
                    func=ast.Name(id="ApiError"),
                    args=[ast.Constant(value=int(status)), ast.Constant(value=str(code)), *_],
                ):
                    yield status, code


def documented() -> set[tuple[int, str]]:
    """Status and code of each error in the table; a row may have several statuses."""
    section = (PROJECT / "docs" / "protocol.md").read_text().partition("\n### Errors\n")[2].partition("\n## ")[0]
    return {
        (int(status), code)
        for statuses, codes in ROW.findall(section)
        for status in re.findall(r"\d{3}", statuses)
        for code in re.findall(r"`(\w+)`", codes)
    }


@pytest.mark.rule("13.errors")
def test_each_code_has_its_place_in_the_table() -> None:
    assert len(set(answered())) > 30
    assert sorted(set(answered()) - documented()) == []
    assert {code for _, code in documented()} == ERROR_CODES
