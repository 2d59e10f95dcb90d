"""Tests the light actors of the flight-delay example."""

import gzip
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import boto3
import pytest
import yaml
from moto import mock_aws

from asya import data
from tests.flights_handlers import load_handlers
from tests.flights_sample import write_dataset
from tests.paths import PROJECT


@pytest.fixture(scope="module")
def handlers() -> ModuleType:
    return load_handlers()


@pytest.fixture
def data_folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ASYA_DATA_URI", f"file://{tmp_path}/")
    return tmp_path


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    write_dataset(folder, flights_per_month=5)
    return folder


@pytest.fixture
def sample_data(sample, monkeypatch) -> Path:
    monkeypatch.setenv("ASYA_DATA_URI", f"file://{sample}/")
    return sample


MEASURES = {"flights": 400, "cancelled": 8, "mean_dep_delay": 12.5, "mean_arr_delay": -3.25, "p95_arr_delay": 61.0}
NO_MEASURES = {"flights": 2, "cancelled": 2, "mean_dep_delay": None, "mean_arr_delay": None, "p95_arr_delay": None}
EWR_COUNTS = {
    "flights": 400,
    "cancelled": 8,
    "departed": 392,
    "dep_delay": 4900.0,
    "arr_delays": [[-10.0, 380], [125.0, 10]],
}
JFK_COUNTS = {
    "flights": 100,
    "cancelled": 0,
    "departed": 100,
    "dep_delay": 3000.0,
    "arr_delays": [[-10.0, 50], [20.0, 50]],
}
NO_COUNTS = {"flights": 2, "cancelled": 2, "departed": 0, "dep_delay": 0.0, "arr_delays": []}


def airport(code, name, counts, statistics):
    """Builds the result of delay-statistics for one airport."""
    empty = {"by_carrier": [], "by_origin_month": [], "by_hour": [], "worst_routes": [], "weather": []}
    return {"airport": code, "name": name, "statistics": empty | statistics, "counts": counts}


EWR = airport(
    "EWR",
    "Newark <Liberty>",
    {
        "carrier": [{"group": "UA", **EWR_COUNTS}, {"group": "ZZ", **NO_COUNTS}],
        "hour": [{"group": None, **NO_COUNTS}, {"group": 7, **EWR_COUNTS}],
        "weather": [{"group": "dry", **EWR_COUNTS}, {"group": "unknown", **NO_COUNTS}],
    },
    {
        "by_carrier": [
            {"carrier": "UA", "name": "United <Air> Lines", **MEASURES},
            {"carrier": "ZZ", "name": None, **NO_MEASURES},
        ],
        "by_origin_month": [
            {"origin": "EWR", "month": None, **NO_MEASURES},
            {"origin": "EWR", "month": 1, **MEASURES},
        ],
        "by_hour": [{"hour": None, **NO_MEASURES}, {"hour": 7, **MEASURES}],
        "worst_routes": [{"origin": "EWR", "dest": "ORD", "dest_name": "Chicago O'Hare", **MEASURES}],
        "weather": [{"weather": "dry", **MEASURES}, {"weather": "unknown", **NO_MEASURES}],
    },
)
JFK = airport(
    "JFK",
    None,
    {
        "carrier": [{"group": "UA", **JFK_COUNTS}],
        "hour": [{"group": 7, **JFK_COUNTS}],
        "weather": [{"group": "wet", **JFK_COUNTS}],
    },
    {
        "by_carrier": [{"carrier": "UA", "name": "United <Air> Lines", **MEASURES}],
        "by_origin_month": [{"origin": "JFK", "month": 2, **MEASURES}],
        "by_hour": [{"hour": 7, **MEASURES}],
        "worst_routes": [
            {"origin": "JFK", "dest": "BOS", "dest_name": None, **MEASURES, "mean_arr_delay": 9.0},
            {"origin": "JFK", "dest": "SFO", "dest_name": None, **NO_MEASURES},
        ],
        "weather": [{"weather": "wet", **MEASURES}],
    },
)
MERGED_PAYLOAD = {
    "flights": "raw/flights.csv.gz",
    "rows_in": 503,
    "duplicates": 1,
    "cancelled": 10,
    "origins": ["EWR", "JFK"],
    "by_airport": [EWR, JFK],
}


def publish(handlers, payload, envelope_id="task-1"):
    """Runs the generator as the runtime does, and returns its frame."""
    steps = handlers.publish_report(payload)
    assert next(steps) == ("GET", ".id")
    frame = steps.send(envelope_id)
    assert list(steps) == []
    return frame


# --- inspect-dataset ---


def test_the_other_tables_default_to_the_folder_of_the_flights(handlers, sample_data):
    result = handlers.inspect_dataset({"flights": "raw/flights.csv.gz", "note": [1]})
    assert result["note"] == [1]
    assert {table: result[table] for table in ("airlines", "airports", "weather")} == {
        "airlines": "raw/airlines.csv.gz",
        "airports": "raw/airports.csv.gz",
        "weather": "raw/weather.csv.gz",
    }
    assert result["files"]["airlines"] == {
        "reference": "raw/airlines.csv.gz",
        "size": (sample_data / "raw/airlines.csv.gz").stat().st_size,
        "columns": ["carrier", "name"],
    }
    assert result["files"].keys() == {"flights", "airlines", "airports", "weather"}


def test_an_uncompressed_table_in_the_folder_of_the_flights_is_found(handlers, sample, data_folder):
    for table in ("flights", "airlines", "airports", "weather"):
        (data_folder / f"{table}.csv").write_bytes(gzip.decompress((sample / f"raw/{table}.csv.gz").read_bytes()))
    result = handlers.inspect_dataset({"flights": "flights.csv"})
    assert result["weather"] == "weather.csv"
    assert result["files"]["flights"]["columns"][:3] == ["year", "month", "day"]


def test_references_in_the_payload_are_kept(handlers, sample_data):
    (sample_data / "other").mkdir()
    (sample_data / "other/rain.csv").write_text("origin,year,month,day,hour,precip\n")
    payload = {"flights": "raw/flights.csv.gz", "weather": "other/rain.csv", "planes": "raw/planes.csv.gz"}
    before = dict(payload)
    result = handlers.inspect_dataset(payload)
    assert payload == before
    assert result.items() >= before.items()
    assert result["files"]["weather"]["reference"] == "other/rain.csv"
    assert "tailnum" in result["files"]["planes"]["columns"]


@pytest.mark.parametrize("payload", [None, [], "raw/flights.csv.gz", {}, {"flights": ""}, {"flights": None}])
def test_a_payload_without_flights_is_refused_with_an_example(handlers, payload):
    with pytest.raises(ValueError, match=r'\{"flights": "raw/flights\.csv\.gz"\}'):
        handlers.inspect_dataset(payload)


@pytest.mark.parametrize("reference", ["../flights.csv", "s3://elsewhere/flights.csv", "/etc/passwd", 7, "/"])
def test_a_malformed_reference_is_refused(handlers, data_folder, reference):
    with pytest.raises((ValueError, FileNotFoundError), match="reference"):
        handlers.inspect_dataset({"flights": reference})


def test_a_missing_file_is_named(handlers, sample_data):
    with pytest.raises(FileNotFoundError, match=r"raw/none\.csv\.gz"):
        handlers.inspect_dataset({"flights": "raw/none.csv.gz"})
    with pytest.raises(FileNotFoundError, match=r"other/weather\.csv"):
        handlers.inspect_dataset({"flights": "raw/flights.csv.gz", "weather": "other/weather.csv"})


def test_a_missing_column_is_named_with_its_file(handlers, sample_data):
    (sample_data / "raw/short.csv").write_text("carrier,title\nUA,United\n")
    with pytest.raises(ValueError, match=r"raw/short\.csv lacks the column\(s\) name; it has carrier, title"):
        handlers.inspect_dataset({"flights": "raw/flights.csv.gz", "airlines": "raw/short.csv"})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", gzip.compress(b"carrier,name\n", mtime=0)),
        ("a.csv.gz", b"carrier,name\n"),
        ("b.csv.gz", gzip.compress(b"carrier,name\n" * 1000, mtime=0)[:12]),
        ("c.csv.gz", gzip.compress(b"carrier,name\n", mtime=0)[:10] + b"\xff" * 20),
        ("d.csv", b"\xff\xfe\x00"),
    ],
)
def test_a_file_that_is_not_csv_is_named(handlers, sample_data, name, content):
    (sample_data / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{re.escape(name)} is not a CSV file, plain or gzip"):
        handlers.inspect_dataset({"flights": "raw/flights.csv.gz", "airlines": name})


@pytest.mark.parametrize("content", [b"", b"\n", b"x" * 1_000_000])
def test_a_file_without_a_header_lacks_columns(handlers, sample_data, content):
    (sample_data / "e.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"e\.csv lacks the column|e\.csv is not a CSV"):
        handlers.inspect_dataset({"flights": "raw/flights.csv.gz", "airlines": "e.csv"})


def test_inspect_dataset_checks_the_columns_that_the_jobs_read(handlers):
    """Handlers and jobs both declare the columns, because they are deployed separately."""
    from flights import tables

    assert {table: set(columns) for table, columns in handlers.COLUMNS.items()} == {
        table: set(getattr(tables, table.upper())) for table in handlers.COLUMNS
    }


# --- split-by-airport ---


def test_each_airport_gets_a_slice_with_the_references_of_its_tables(handlers):
    tables = {"clean": "clean/x", "airlines": "a.csv", "airports": "p.csv", "weather": "w.csv"}
    [slices] = handlers.split_by_airport({**tables, "origins": ["EWR", "JFK"], "rows_in": 3})
    assert slices.items == ({"airport": "EWR", **tables}, {"airport": "JFK", **tables})
    assert (slices.to, slices.into, slices.at) == (("delay-statistics",), "/by_airport", "x-fan-in")


# --- publish-report ---


def test_means_and_percentiles_over_airports_are_computed_from_counts(handlers, data_folder):
    """UA has 392 + 100 departures at both airports.

    Its arrival delays are −10 (430 times), 20 (50 times) and 125 minutes (10 times).
    """
    statistics = publish(handlers, MERGED_PAYLOAD)["statistics"]
    united, unknown = statistics["by_carrier"]
    assert (united["carrier"], united["name"], united["flights"], united["cancelled"]) == (
        "UA",
        "United <Air> Lines",
        500,
        8,
    )
    assert united["mean_dep_delay"] == pytest.approx((4900 + 3000) / 492)
    assert united["mean_arr_delay"] == pytest.approx((-4300 + 1000 + 1250) / 490)
    assert united["p95_arr_delay"] == 20.0  # the 465.55th of 490
    assert unknown == {"carrier": "ZZ", "name": None, **NO_MEASURES}
    assert [row["hour"] for row in statistics["by_hour"]] == [None, 7]
    assert [row["weather"] for row in statistics["weather"]] == ["dry", "unknown", "wet"]


def test_percentiles_over_airports_interpolate(handlers):
    from collections import Counter

    statistics = sys.modules["flights_statistics"]
    assert statistics.percentile(Counter({0.0: 1, 10.0: 1, 20.0: 1, 100.0: 1}), 0.95) == pytest.approx(88.0)
    assert statistics.percentile(Counter({7.0: 1}), 0.95) == 7.0


def test_months_and_routes_of_the_airports_are_concatenated(handlers, data_folder):
    statistics = publish(handlers, MERGED_PAYLOAD)["statistics"]
    assert [(row["origin"], row["month"]) for row in statistics["by_origin_month"]] == [
        ("EWR", None),
        ("EWR", 1),
        ("JFK", 2),
    ]
    assert [row["dest"] for row in statistics["worst_routes"]] == ["BOS", "ORD", "SFO"]


def test_each_airport_has_a_summary(handlers, data_folder):
    newark, kennedy = publish(handlers, MERGED_PAYLOAD)["statistics"]["by_airport"]
    assert (newark["airport"], newark["name"], newark["flights"], newark["cancelled"]) == (
        "EWR",
        "Newark <Liberty>",
        402,
        10,
    )
    assert newark["mean_dep_delay"] == pytest.approx(12.5)
    assert (kennedy["airport"], kennedy["name"], kennedy["p95_arr_delay"]) == ("JFK", None, 20.0)
    assert kennedy["by_hour"] == JFK["statistics"]["by_hour"]


def test_the_report_is_named_after_the_envelope(handlers, data_folder):
    frame = publish(handlers, MERGED_PAYLOAD, "task/1")
    assert frame["report"] == "reports/task%2F1.html"
    assert frame.keys() == MERGED_PAYLOAD.keys() - {"by_airport"} | {"statistics", "report"}
    assert frame.items() >= {key: value for key, value in MERGED_PAYLOAD.items() if key != "by_airport"}.items()
    page = (data_folder / frame["report"]).read_text()
    assert page.startswith("<!doctype html>")
    assert "Flight delays out of EWR and JFK" in page
    assert "502" in page
    assert "−3.2" in page  # a true minus sign


def test_the_report_loads_no_external_resources(handlers, data_folder):
    page = (data_folder / publish(handlers, MERGED_PAYLOAD)["report"]).read_text()
    assert not re.search(r"https?:|//\w|\bsrc=|\bhref|url\(|@import|<script|<link|<iframe|<img", page)


def test_the_report_escapes_text(handlers, data_folder):
    page = (data_folder / publish(handlers, {**MERGED_PAYLOAD, "flights": "raw/<b>.csv"})["report"]).read_text()
    assert "United &lt;Air&gt; Lines" in page
    assert "raw/&lt;b&gt;.csv" in page
    assert "Chicago O&#x27;Hare" in page


def test_the_report_shows_dashes_for_missing_values(handlers, data_folder):
    page = (data_folder / publish(handlers, MERGED_PAYLOAD)["report"]).read_text()
    assert not re.search(r"None|nan|NaN|inf\b", page)
    assert page.count("<svg") == 2 + len(MERGED_PAYLOAD["by_airport"])


def test_the_report_compares_the_airports(handlers, data_folder):
    page = (data_folder / publish(handlers, MERGED_PAYLOAD)["report"]).read_text()
    assert "Newark &lt;Liberty&gt;" in page
    assert page.count("<figcaption>") == 2
    assert "Approved by" not in page


def test_the_report_names_the_approver(handlers, data_folder):
    payload = {**MERGED_PAYLOAD, "approved_by": "Ada <L.>"}
    assert "Approved by Ada &lt;L.&gt;." in (data_folder / publish(handlers, payload)["report"]).read_text()


def test_a_second_run_writes_the_same_report(handlers, data_folder):
    first = (data_folder / publish(handlers, MERGED_PAYLOAD)["report"]).read_bytes()
    assert (data_folder / publish(handlers, MERGED_PAYLOAD)["report"]).read_bytes() == first
    assert len(list((data_folder / "reports").iterdir())) == 1


def test_empty_statistics_make_a_report(handlers, data_folder):
    payload = {**MERGED_PAYLOAD, "rows_in": 0, "duplicates": 0, "cancelled": 0, "origins": [], "by_airport": []}
    assert "Flight delays" in (data_folder / publish(handlers, payload)["report"]).read_text()


def test_without_statistics_no_report_is_written(handlers, data_folder):
    steps = handlers.publish_report({"flights": "raw/flights.csv.gz"})
    next(steps)
    with pytest.raises(KeyError, match="by_airport"):
        steps.send("task-1")
    assert not (data_folder / "reports").exists()


# --- the example as a whole ---


@mock_aws
def test_the_handlers_work_on_a_bucket(handlers, sample, monkeypatch):
    monkeypatch.setenv("ASYA_DATA_URI", "s3://meshdata/data/")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    data._s3.cache_clear()
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="meshdata")
    for path in (sample / "raw").iterdir():
        s3.put_object(Bucket="meshdata", Key=f"data/raw/{path.name}", Body=path.read_bytes())
    files = handlers.inspect_dataset({"flights": "raw/flights.csv.gz"})["files"]
    assert files["weather"]["columns"][:2] == ["origin", "year"]
    report = publish(handlers, MERGED_PAYLOAD)["report"]
    assert s3.head_object(Bucket="meshdata", Key=f"data/{report}")["ContentType"] == "text/html; charset=utf-8"
    data._s3.cache_clear()


@pytest.mark.slow
def test_the_example_envelope_equals_the_one_that_the_tool_starts(tmp_path):
    envelope = json.loads((PROJECT / "events/analyse-flights.json").read_text())
    mesh = yaml.safe_load((PROJECT / "mesh.yaml").read_text())
    route = mesh["tools"]["analyse-flights"]["route"]
    assert envelope["route"] == {"prev": [], "curr": route[0], "next": route[1:]}
    assert envelope["payload"] == write_dataset(tmp_path, flights_per_month=1)
