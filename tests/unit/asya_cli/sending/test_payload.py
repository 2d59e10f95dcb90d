"""The payload of `asya run` from the command line."""

import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given

from asya_cli.errors import CommandError
from asya_cli.sending.payload import read_payload
from tests.doubles.json_numbers import NUMBERS

DEEP = f"{'[' * 5000}{']' * 5000}"


@pytest.mark.parametrize(
    ("parts", "payload"),
    [
        ([], b"{}"),
        (['{"n": 3}'], b'{"n":3}'),
        (["[1, 2]"], b"[1,2]"),
        (["n=3", "name=ada", "tags=[1]", "text=a=b", "none=null"], None),
    ],
)
def test_a_payload_is_json_or_keys(parts: list[str], payload: bytes | None) -> None:
    keys = b'{"n":3,"name":"ada","tags":[1],"text":"a=b","none":null}'
    assert bytes(read_payload(parts)) == (payload or keys)


def test_a_payload_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text('{"total": 1}')
    assert bytes(read_payload([f"@{tmp_path}/order.json"])) == b'{"total":1}'


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_payload_in_the_encodings_of_windows(tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors begin UTF-8 with a mark, and `>` of PowerShell writes UTF-16."""
    content = '{"who": "Zoë"}\r\n'.encode(encoding)
    (tmp_path / "order.json").write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert [bytes(read_payload([source])) for source in (f"@{tmp_path}/order.json", "-")] == [
        '{"who":"Zoë"}'.encode()
    ] * 2


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        (["three"], "neither KEY=VALUE nor a payload"),
        (["n=1", '{"n": 1}'], "is a whole payload, so no key fits beside it"),
        (["@order.json", "n=1"], "'@order.json' is a whole payload"),
        (["-", "n=1"], "'-' is a whole payload"),
        (["n=1", "m=2", "n=3"], "the key 'n' comes twice"),
        (["{n}"], "not valid JSON"),
        (["@missing.json"], "cannot read missing.json"),
        (['{"n": 1, "n": 2}'], '--payload: the key "n" comes twice in an object'),
        (['{"a": [{"b": {"n": 1, "n": 1}}]}'], 'the key "n" comes twice'),
        (['a={"n": 1, "n": 2}'], '--payload: a: the key "n" comes twice'),
        ([DEEP], "--payload is nested too deeply; no actor could read it"),
        ([f"a={DEEP}"], "--payload: a is nested too deeply"),
        (['{"n": 1e400}'], "Number out of range"),
        (["n=1e400"], "--payload: n has a number that no actor could read: Number out of range"),
    ],
)
def test_what_is_neither_is_named(parts: list[str], problem: str) -> None:
    with pytest.raises(CommandError) as refused:
        read_payload(parts)
    assert problem in refused.value.problem


@given(NUMBERS)
@pytest.mark.slow
def test_numbers_keep_their_texts(text: str) -> None:
    found: list[str] = []
    for parts in ([f'{{"total": {text}, "all": [{text}]}}'], [f"total={text}", f"all=[{text}]"]):
        json.loads(bytes(read_payload(parts)), parse_float=found.append, parse_int=found.append)
    assert found == [text] * 4
