"""The light actors of the flight-delay example: check the files, fan out by airport, write the report."""

import csv
import gzip
import io
import zlib
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from asya import data, fan_out
from flights_report import render
from flights_statistics import over_all

Payload = dict[str, Any]
HEADER_LIMIT = 64 * 1024  # characters

# The columns that the pipeline reads. `planes` is checked only if the payload names it.
COLUMNS = {
    "flights": (
        *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"),
        *("carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance", "hour", "minute", "time_hour"),
    ),
    "airlines": ("carrier", "name"),
    "airports": ("faa", "name"),
    "weather": ("origin", "year", "month", "day", "hour", "precip"),
}


def inspect_dataset(payload: Payload) -> Payload:
    """Check the files before a Spark job runs.

    Adds to the payload:

    - the references of tables it does not name: the files beside `flights`,
    - `files`: the size in bytes and the columns of each.

    Raises:
        ValueError: if `flights` is missing, a reference is malformed, or a file is not a CSV file with the required columns.
        FileNotFoundError: if a file does not exist.
    """
    if not isinstance(payload, dict) or not payload.get("flights"):
        raise ValueError('the payload must name the flights file, such as {"flights": "raw/flights.csv.gz"}')
    files = {"flights": inspect_file("flights", payload["flights"])}
    beside_flights = {table: beside(payload["flights"], table) for table in COLUMNS if not payload.get(table)}
    payload = payload | beside_flights
    for table in ("airlines", "airports", "weather", "planes"):
        if payload.get(table):
            files[table] = inspect_file(table, payload[table])
    return {**payload, "files": files}


def split_by_airport(payload: Payload) -> Generator[Any, Any, None]:
    """Fan out by airport; the fan-in merges the statistics of all airports into `by_airport`.

    Raises:
        KeyError: if the payload lacks the references of the tables or the airports (`origins`).
    """
    tables = {name: payload[name] for name in ("clean", "airlines", "airports", "weather")}
    airports = [{"airport": airport, **tables} for airport in payload["origins"]]
    yield from fan_out(airports, to=["delay-statistics"], into="/by_airport", at="x-fan-in")


def publish_report(payload: Payload) -> Generator[Any, Any, None]:
    """Merge the results of the airports into `statistics`, and write the report as one self-contained HTML file.

    Adds the reference of the file to the payload as `report`.

    Raises:
        KeyError: if the payload lacks `by_airport`.
    """
    envelope_id = yield ("GET", ".id")
    airports = payload["by_airport"]
    payload = {name: value for name, value in payload.items() if name != "by_airport"}
    payload["statistics"] = over_all(airports)
    report = f"reports/{quote(envelope_id, safe='')}.html"
    data.write(report, render(payload).encode(), "text/html; charset=utf-8")
    yield {**payload, "report": report}


def beside(flights: str, table: str) -> str:
    """Return the reference of a table beside the flights file: gzipped if that file exists, else plain."""
    compressed = str(PurePosixPath(flights).with_name(f"{table}.csv.gz"))
    try:
        data.size(compressed)
    except (FileNotFoundError, PermissionError):  # without permission to list, S3 denies access to a missing key
        return compressed.removesuffix(".gz")
    return compressed


def inspect_file(table: str, reference: str) -> Payload:
    """Return size and columns of a CSV file. Reads only its first bytes."""
    size, columns = data.size(reference), read_header(reference)
    if missing := [name for name in COLUMNS.get(table, ()) if name not in columns]:
        raise ValueError(f"{reference} lacks the column(s) {', '.join(missing)}; it has {', '.join(columns) or 'none'}")
    return {"reference": reference, "size": size, "columns": columns}


def read_header(reference: str) -> list[str]:
    """Return the column names of a CSV file, plain or gzip."""
    with data.open(reference) as body:
        text = io.TextIOWrapper(gzip.GzipFile(fileobj=body) if reference.endswith(".gz") else body, "utf-8-sig")
        try:
            return next(csv.reader([text.readline(HEADER_LIMIT)]))
        except (UnicodeDecodeError, gzip.BadGzipFile, zlib.error, EOFError, csv.Error) as error:
            raise ValueError(f"{reference} is not a CSV file, plain or gzip: {error}") from error
