"""References: any key that S3 allows, and the few that paths and writers cannot have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.data_references import (
    check_new_reference,
    check_path,
    check_prefix,
    check_reference,
    hint,
    is_below_bucket,
    is_folder_marker,
    pattern_of_prefix,
)
from tests.doubles.s3_keys import any_key

ODD = [
    "Screenshot 3.15.04\u202fPM.png",
    "invoice [final].pdf",
    "a+b %20 {c,d} *?.csv",
    " leading and trailing ",
    "new\nline\ttab\0nul\x7f",
    "10:30/readings.csv",
    "back\\slash",
    "😀/été",
]
PATHLESS = ["/etc/passwd", "raw//x", "raw/../x", "./raw", "..", "raw/.", "//", "/"]


@pytest.mark.rule("1.references")
@pytest.mark.parametrize("reference", ["raw/flights.csv.gz", "clean/42/flights/", *ODD, *PATHLESS, "s3://b/x"])
def test_1_a_key_is_a_reference(reference: str) -> None:
    assert check_reference(reference) == reference


@pytest.mark.rule("1.references")
@pytest.mark.parametrize(
    ("reference", "problem"),
    [("", "empty"), ("raw/\ud800", "half a character"), ("é" * 513, "longer than 1024 bytes")],
)
def test_1_what_no_key_is_is_refused_with_the_reason(reference: str, problem: str) -> None:
    with pytest.raises(ValueError, match="is not a reference") as caught:
        check_reference(reference)
    assert problem in str(caught.value)


@pytest.mark.rule("1.references")
@pytest.mark.parametrize("reference", [None, 7, ["raw"], {"flights": 1}, b"raw"])
def test_1_only_text_is_a_reference(reference: object) -> None:
    with pytest.raises(ValueError, match=f"not {type(reference).__name__}"):
        check_reference(reference)


@pytest.mark.rule("1.references.write")
@pytest.mark.parametrize("reference", ["s3://other/x", "file:/etc/passwd", "S3A:bucket", "http://x/y", "raw/", "/"])
def test_1_a_mistake_of_its_author_is_not_written(reference: str) -> None:
    with pytest.raises(ValueError, match=r"is a URI|names a folder"):
        check_new_reference(reference)


@pytest.mark.rule("1.references.write", "1.references.paths")
@pytest.mark.parametrize("reference", ODD)
def test_1_other_keys_are_written_and_are_paths(reference: str) -> None:
    assert check_new_reference(reference) == check_path(reference) == reference


@pytest.mark.rule("1.references.paths")
@pytest.mark.parametrize("reference", [*PATHLESS, "s3://b/x"])
def test_1_no_path_leads_to_these(reference: str) -> None:
    with pytest.raises(ValueError, match="is not a reference"):
        check_path(reference)


@pytest.mark.rule("1.references")
@pytest.mark.parametrize(
    ("key", "is_valid"),
    [
        ("videos/2014/../../video1.wmv", True),
        ("videos/../../video1.wmv", False),
        ("data/../x", True),
        ("../x", False),
        ("a//../..", False),
        ("./..", False),
        ("..x/..", True),
    ],
)
def test_1_no_key_leads_above_its_bucket(key: str, is_valid: bool) -> None:
    """The first two are the examples in the guide of S3."""
    assert is_below_bucket(key) is is_valid


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("s3://b/x", "relative"),
        ("/raw/x", "relative"),
        ("../raw/x", "relative"),
        ("raw/", "folder"),
        ("raw/*.csv", "no pattern"),
        ("raw/x", ""),
    ],
)
def test_a_missing_file_has_a_hint(reference: str, text: str) -> None:
    assert text in hint(reference)
    assert bool(text) is bool(hint(reference))


@given(any_key())
@pytest.mark.slow
def test_every_key_is_a_reference(key: str) -> None:
    assert check_reference(key) == key


@given(st.text())
def test_no_text_breaks_the_checks_or_climbs_out_by_a_path(text: str) -> None:
    try:
        reference = check_path(text)
    except ValueError:
        return
    assert not reference.startswith("/")
    assert not {"..", "."} & set(reference.split("/"))


@pytest.mark.rule("1.references.list")
@pytest.mark.parametrize("prefix", ["", "raw/", "raw/2026-", "/", "a//b", "..", *ODD])
def test_1_any_beginning_of_a_key_is_a_prefix(prefix: str) -> None:
    assert check_prefix(prefix) == prefix


@pytest.mark.rule("1.references.list")
@pytest.mark.parametrize("prefix", [None, 7, b"raw/", "raw/\ud800", "é" * 513, "s3://bucket/raw/", "file:/raw"])
def test_1_a_prefix_that_no_reference_has_is_refused(prefix: object) -> None:
    with pytest.raises(ValueError, match="such as 'raw/'"):
        check_prefix(prefix)


@pytest.mark.rule("1.references.list.markers")
@pytest.mark.parametrize(
    ("key", "size", "is_marker"),
    [("raw/", 0, True), ("raw_$folder$", 0, True), ("raw/", 1, False), ("raw", 0, False), ("_$folder$", 2, False)],
)
def test_1_a_folder_marker_is_empty_and_has_its_name(key: str, size: int, is_marker: bool) -> None:
    assert is_folder_marker(key, size) == is_marker


@pytest.mark.rule("1.references.list.access")
@pytest.mark.parametrize(
    ("prefix", "pattern"),
    [
        ("", "*"),
        ("raw/", "raw/*"),
        ("raw/2026-", "raw/2026-*"),
        ("raw/[a]?/x", "raw/[a]*"),
        ("raw/${aws:userid}/", "raw/*"),
        ("/raw", "*"),
        ("a/../b", "*"),
    ],
)
def test_1_the_pattern_of_a_prefix_has_no_wildcard_but_its_last(prefix: str, pattern: str) -> None:
    assert pattern_of_prefix(prefix) == pattern
