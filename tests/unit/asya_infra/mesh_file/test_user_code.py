"""What the mesh file learns of user code: the shape of a job, and whether a handler gives one frame."""

from pathlib import Path

import pytest

from asya_infra.mesh_file.user_code import detect_shape, returns


@pytest.mark.parametrize(
    ("signature", "shape"),
    [
        ("spark, payload", "payload"),
        ("spark, envelopes", "dataframe"),
        ("spark, rows: DataFrame", "dataframe"),
        ("spark, rows: 'pyspark.sql.DataFrame'", "dataframe"),
        ("spark, rows: sql.DataFrame", "dataframe"),
        ("spark, rows: dict", "payload"),
        ("*arguments", "payload"),
    ],
)
def test_the_shape_of_a_job_is_read_from_its_second_parameter(tmp_path: Path, signature: str, shape: str) -> None:
    (tmp_path / "heavy.py").write_text(f"from pyspark import sql\ndef crunch({signature}): ...\n")
    assert detect_shape(tmp_path, "heavy.crunch") == shape


def test_the_shape_is_detected_through_imports(tmp_path: Path) -> None:
    package = tmp_path / "flights"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from .cleaning import clean as clean_flights\nfrom flights.cleaning import clean\n"
    )
    (package / "cleaning.py").write_text("def clean(spark, envelopes): ...\n")
    assert detect_shape(tmp_path, "flights.clean_flights") == "dataframe"
    assert detect_shape(tmp_path, "flights.clean") == "dataframe"
    assert detect_shape(tmp_path, "flights.cleaning.clean") == "dataframe"


HANDLERS = """
import functools
from elsewhere import *

def plain(payload):
    return [each for each in payload]

async def waits(payload):
    return payload

def with_inner_generator(payload):
    def inner():
        yield payload
    return list(inner())

class Scorer:
    def score(self, payload):
        return payload

    def split(self, payload):
        yield from payload

def stream(payload):
    yield payload

async def stream_async(payload):
    if payload:
        yield payload

def commands(payload):
    name = yield "GET", ".id"
    return name

@functools.cache
def decorated(payload):
    return payload

assigned = plain
"""


@pytest.mark.rule("11.sink.one-frame")
@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        ("plain", True),
        ("waits", True),
        ("with_inner_generator", True),
        ("Scorer.score", True),
        ("Scorer.split", False),
        ("stream", False),
        ("stream_async", False),
        ("commands", False),
        ("decorated", False),
        ("assigned", False),
        ("unknown", False),
    ],
)
def test_a_handler_that_returns_gives_one_frame(tmp_path: Path, handler: str, expected: bool) -> None:
    (tmp_path / "hands.py").write_text(HANDLERS)
    assert returns(tmp_path, f"hands.{handler}") is expected
