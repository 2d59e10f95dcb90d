"""What the mesh file learns of user code: the shape of a job, and whether a handler gives one frame."""

from pathlib import Path

import pytest

from asya_infra.mesh_file.user_code import CodeError, detect_shape, find_stops, returns


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


@pytest.mark.parametrize(
    ("start", "encoding"),
    [
        ("", "utf-8-sig"),
        ("# -*- coding: latin-1 -*-\n", "latin-1"),
        ("#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\n", "cp1252"),
        ("# coding: utf-8\r\n", "utf-8-sig"),
    ],
)
def test_a_module_is_in_the_encoding_that_it_says(tmp_path: Path, start: str, encoding: str) -> None:
    text = f"{start}WHO = 'Zoë'\ndef crunch(spark, rows: DataFrame): ...\ndef one(payload): return 1\n"
    (tmp_path / "heavy.py").write_bytes(text.encode(encoding))
    assert detect_shape(tmp_path, "heavy.crunch") == "dataframe"
    assert returns(tmp_path, "heavy.one")
    assert not list(find_stops(tmp_path, "heavy.crunch"))


@pytest.mark.parametrize("content", [b"WHO = 'Zo\xeb'\n", b"# coding: klingon\n", b"x = 1\0\n", b"def f(:\n"])
def test_a_module_that_python_refuses_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "heavy.py").write_bytes(content)
    with pytest.raises(CodeError, match=r"heavy\.py:\d+ is not valid Python: .+"):
        detect_shape(tmp_path, "heavy.crunch")


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
