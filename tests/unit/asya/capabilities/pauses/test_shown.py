"""protocol §11: what a pause shows of the payload."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from asya.capabilities.pauses.shown import (
    CHOSEN_BYTES,
    DEFAULT_BYTES,
    MOST_ENTRIES,
    TEXT_CHARACTERS,
    linked_parts,
    shown_values,
    text_lines,
)
from asya.protocol.pause import ShownValue

TEXTS = st.text(st.characters(codec="utf-8"))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=40)


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def texts_of(payload: Raw, *pointers: str) -> list[str | None]:
    return [each.text for each in shown_values(payload, pointers)]


@pytest.mark.rule("11.pause.shown-value")
@pytest.mark.parametrize(
    "digits", ["3544790567247868102", "12345678901234567.89", "0.10", "-0", "1E400", "9" * 400, "1e-7"]
)
def test_numbers_have_the_digits_of_the_payload(digits: str) -> None:
    payload = Raw(f'{{"total": {digits}, "lines": [{{"price":{digits}}}, 1]}}'.encode())
    assert texts_of(payload, "/total", "/lines/0/price") == [digits, digits]
    members = {each.pointer: each.text or "" for each in shown_values(payload, None)}
    assert (members["/total"], digits in members["/lines"]) == (digits, True)


@pytest.mark.rule("11.pause.shown-value")
def test_a_missing_value_has_its_pointer_alone() -> None:
    payload = raw({"a": [1], "t": "x"})
    pointers = ("/b", "/a/1", "/a/-1", "/a/x", "/t/0", "/a/0/c")
    assert shown_values(payload, pointers) == tuple(ShownValue(pointer=pointer) for pointer in pointers)
    assert msgspec.json.encode(shown_values(payload, ("/b",))) == b'[{"pointer":"/b"}]'
    assert text_lines(shown_values(payload, ("/b", "/t"))) == "/b: (missing)\n/t: x"


@pytest.mark.rule("11.pause.shown-value")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines", "two\nlines"),
        ("to\u202eleft", "to\\u202eleft"),
        ("\x1b[2J\x9b", "\\u001b[2J\\u009b"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
        ("<b>Ærlig & sant</b>", "<b>Ærlig & sant</b>"),
    ],
)
def test_a_text_has_its_characters(text: str, shown: str) -> None:
    assert shown_values(raw({"a": text}), ("/a",)) == (ShownValue(pointer="/a", text=shown, type="string"),)
    nested = json.dumps(shown, ensure_ascii=False).replace("\\\\u", "\\u")
    assert texts_of(raw({"a": text}), "") == [f'{{"a": {nested}}}']


@pytest.mark.rule("11.pause.shows")
def test_small_values_are_whole_beside_a_large_one() -> None:
    payload = raw({"lines": ["x" * 200] * 400, "notes": "n" * 90_000, "total": 12})
    lines, notes, total = shown_values(payload, ("/lines", "/notes", "/total"))
    assert (total.text, total.cut) == ("12", False)
    assert (lines.cut, notes.cut) == (True, True)
    assert len(notes.text or "") > CHOSEN_BYTES / 3
    assert (notes.text or "")[-1] == "…"
    by_default = {each.name: each for each in shown_values(payload, None)}
    assert (by_default["/total"].text, by_default["/notes"].cut) == ("12", True)


@pytest.mark.rule("11.pause.shows")
def test_entries_texts_and_levels_are_bounded() -> None:
    deep = json.loads("[" * 90 + "]" * 90)
    payload = raw(
        {"rows": list(range(1000)), "text": ["t" * 1000], "deep": deep, "wide": {f"m{n}": n for n in range(60)}}
    )
    rows, text, depth, wide = shown_values(payload, ("/rows", "/text", "/deep", "/wide"))
    assert "\n  49,\n  … 950 more entries\n]" in (rows.text or "")
    assert (text.text or "").count("t") == TEXT_CHARACTERS + "… 700 more characters".count("t")
    assert "… 700 more characters" in (text.text or "")
    assert "[… 1 entries]" in (depth.text or "")
    assert "… 10 more members" in (wide.text or "")
    assert all(each.cut for each in (rows, text, depth, wide))


@pytest.mark.rule("11.pause.shows")
def test_members_beyond_the_bound_are_counted() -> None:
    names = [f"m{number}" for number in range(MOST_ENTRIES + 5)]
    shown = shown_values(raw(dict.fromkeys(["n" * 200, *names], 1)), None)
    assert shown[-1] == ShownValue(pointer="", text="… 6 more members", type="object", cut=True)
    assert [each.pointer for each in shown[:-1]] == [f"/{name}" for name in names[:MOST_ENTRIES]]


@pytest.mark.rule("11.pause.shows")
@pytest.mark.parametrize(("payload", "text"), [([1, "a"], '[1, "a"]'), ({}, "{}"), (None, "null"), ("t", "t")])
def test_a_payload_without_members_is_shown_itself(payload: object, text: str) -> None:
    (shown,) = shown_values(raw(payload), None)
    assert (shown.name, shown.text, shown.cut) == ("payload", text, False)


def test_nothing_is_shown_where_nothing_is_named() -> None:
    assert shown_values(raw({"a": 1}), ()) == ()


@pytest.mark.rule("11.pause.shown-once")
def test_the_link_that_answers_is_not_shown() -> None:
    link = "https://mesh.example/callbacks?token=abc"
    payload = raw({"links": {"approve": link, "more": "m" * 100}, "link": link, "short": [link]})
    for pointers in (None, ("/links", "/link", "/short", "")):
        shown = shown_values(payload, pointers, link)
        assert "token" not in text_lines(shown)
        assert "(the link that answers this pause)" in text_lines(shown)


@given(VALUES, st.booleans())
@pytest.mark.slow
def test_any_payload_is_shown_within_the_bound(payload: object, is_default: bool) -> None:
    shown = shown_values(raw(payload), None if is_default else ("", "/a", "/0"))
    assert sum(len((each.text or "").encode()) for each in shown) <= (DEFAULT_BYTES if is_default else CHOSEN_BYTES)
    for each in shown:
        assert "".join(part for part, _ in linked_parts(each)) == (each.text or "")
        assert all(character.isprintable() or character in "\n\t\u200c\u200d" for character in each.text or "")


@given(VALUES)
@pytest.mark.slow
def test_a_whole_value_is_its_json(payload: object) -> None:
    (shown,) = shown_values(raw(payload), ("",))
    if not shown.cut and shown.type != "string" and "\\U" not in (shown.text or ""):
        assert json.loads(shown.text or "") == payload


@pytest.mark.rule("11.callback.shows")
@pytest.mark.parametrize(
    ("text", "is_link"),
    [
        ("https://example.org/report?id=1&x=[2]#top", True),
        ("http://10.0.0.1:8080/a", True),
        ("s3://bucket-1/runs/day=2026-01-01/part.parquet", True),
        ("https://bank.example@evil.example/", False),
        ("https://evil.example\\@bank.example", False),
        ("https://bаnk.example/", False),
        ("https://a b", False),
        ("javascript:alert(1)//https://x", False),
        ("JAVASCRIPT:alert(1)", False),
        ("data:text/html,x", False),
        ('https://x/"onmouseover="alert(1)', False),
        ("s3://UPPER/x", False),
        ("see https://example.org", False),
    ],
)
def test_only_addresses_of_data_are_links(text: str, is_link: bool) -> None:
    (shown, listed) = shown_values(raw({"a": text, "b": [text, "x" * 100]}), ("/a", "/b"))
    assert list(linked_parts(shown)) == [(text, is_link)]
    assert [part for part, is_address in linked_parts(listed) if is_address] == ([text] if is_link else [])
