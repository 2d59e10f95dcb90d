"""References of any payload stay inside the data prefix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.data_references import check_reference


@pytest.mark.parametrize(
    "reference",
    [
        "raw/flights.csv.gz",
        "flights.csv",
        "clean/42/flights/",
        "a..b/c",
        "year=2013/month=1/part.parquet",
        "raw/%2e%2e/x",  # not decoded: a plain name
        "raw/été 2013.csv",
        "10:30/readings.csv",
    ],
)
def test_a_relative_path_is_a_reference(reference):
    assert check_reference(reference) == reference


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("", "empty"),
        ("/etc/passwd", "starts with '/'"),
        ("raw/../../secret", "'.' or '..'"),
        ("..", "'.' or '..'"),
        ("./raw", "'.' or '..'"),
        ("raw//flights.csv", "'//'"),
        ("s3://other/flights.csv", "a URI"),
        ("file:/etc/passwd", "a URI"),
        ("S3A:bucket", "a URI"),
        ("raw\\..\\secret", "a backslash"),
        ("raw/\0", "unprintable"),
        ("raw/a\nb", "unprintable"),
        ("raw/\ud800", "unprintable"),
        ("raw/*.csv", "not a pattern"),
        ("raw/{a,b}", "not a pattern"),
        ("é" * 451, "longer than 900 bytes"),
    ],
)
def test_anything_else_is_refused_with_the_reason(reference, problem):
    with pytest.raises(ValueError, match=r"(?s)is not a reference") as caught:
        check_reference(reference)
    assert problem in str(caught.value)


@pytest.mark.parametrize("reference", [None, 7, ["raw"], {"flights": 1}, b"raw"])
def test_only_text_is_a_reference(reference):
    with pytest.raises(ValueError, match=f"not {type(reference).__name__}"):
        check_reference(reference)


@given(st.text())
def test_no_text_breaks_the_check_or_climbs_out(text):
    try:
        reference = check_reference(text)
    except ValueError:
        return
    assert not reference.startswith("/")
    assert ".." not in reference.split("/")
