"""Misspelled settings of Spark are found, and others are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya_infra.mesh_file.spark_settings import known_settings, meant

LONG = [name for name in known_settings() if len(name) > len("spark.sql.ansi.e")]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("spark.sql.ansi.enable", "spark.sql.ansi.enabled"),
        ("spark.sql.shuffle.partition", "spark.sql.shuffle.partitions"),
        ("spark.SQL.shuffle.partitions", "spark.sql.shuffle.partitions"),
        ("spark.sql.adaptive.enabled", None),
        ("spark.hadoop.fs.s3a.acess.key", None),
        ("spark.sql.catalog.lake.type", None),
        ("spark.executorEnv.PATH", None),
        ("spark.own.setting", None),
    ],
)
def test_a_misspelled_setting_is_recognized(setting: str, expected: str | None) -> None:
    assert meant(setting) == expected


@pytest.mark.slow
@given(st.sampled_from(LONG), st.data())
def test_a_missing_letter_gives_a_setting_that_exists(setting: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(len("spark."), len(setting) - 1))
    found = meant(setting[:place] + setting[place + 1 :])
    assert found is None or found in known_settings()
    assert meant(setting) is None
