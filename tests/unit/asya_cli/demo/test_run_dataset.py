"""The demo's data."""

import gzip

import pytest

from asya_cli.demo.run import dataset_files


@pytest.mark.slow
def test_the_data_are_the_five_tables_of_2013() -> None:
    files = dict(dataset_files())
    assert sorted(files) == [
        f"raw/{table}.csv.gz" for table in ("airlines", "airports", "flights", "planes", "weather")
    ]
    assert gzip.decompress(files["raw/flights.csv.gz"]).count(b"\n") == 336_776 + 1
