"""The flight-delay jobs: against pandas on the real data, and at the edges on made-up data."""

import csv
import gzip
import json
import os
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from pyspark.errors import AnalysisException, PySparkException

import flights
from asya_infra.mesh_file import load_mesh, to_table
from tests.flights_handlers import load_handlers
from tests.flights_pandas import assert_agrees
from tests.flights_sample import write_dataset
from tests.paths import PROJECT
from tests.spark.job_run import Run

pytestmark = pytest.mark.spark

STATISTICS = to_table(load_mesh(PROJECT / "mesh.yaml")).actors["delay-statistics"].spark

HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
ROW = "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z"
FLIGHT = dict(zip(HEADER.split(","), ROW.split(","), strict=True))
CANCELLED = {"dep_time": "NA", "dep_delay": "NA", "arr_time": "NA", "arr_delay": "NA", "air_time": "NA"}
WEATHER = {"origin": "EWR", "year": 2013, "month": 1, "day": 1, "hour": 5, "precip": 0}


@pytest.fixture(autouse=True)
def envelope(monkeypatch):
    monkeypatch.setattr("flights.cleaning.context", lambda: SimpleNamespace(id="task/1"))


@pytest.fixture
def dataset(data_folder):
    """Write made-up tables and return the payload that names them."""

    def write(flight_rows, weather=(WEATHER,), airlines=({"carrier": "UA", "name": "United"},)):
        airports = [{"faa": "IAH", "name": "Houston"}]
        tables = {"flights": flight_rows, "weather": weather, "airlines": airlines, "airports": airports}
        return {name: write_csv(data_folder, f"raw/{name}.csv", rows) for name, rows in tables.items()}

    return write


def write_csv(folder: Path, reference: str, rows) -> str:
    path = folder / reference
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return reference


def flights_of(count, **changes):
    return [{**FLIGHT, "flight": number, **changes} for number in range(count)]


@pytest.fixture
def run(spark, tmp_path):
    """As the mesh does it: the clean flights, one job for all airports, and the airports merged."""
    folders = (tmp_path / f"run-{number}" for number in count())

    def run(payload):
        handlers = load_handlers()
        cleaned = flights.clean_flights(spark, payload)
        [airports] = handlers.split_by_airport(cleaned)
        parts = statistics_of(spark, next(folders), airports.items)
        return {**cleaned, "statistics": handlers.over_all(parts)}

    return run


def statistics_of(spark, folder, payloads):
    """The results of one job run; raises its first error."""
    settings = {"job": STATISTICS.job, "payload_schema": STATISTICS.payload_schema}
    job = Run(spark, folder, payloads, shape="dataframe", **settings)
    for head in job.heads.values():
        if head.error is not None:
            raise ValueError(head.error.message)
    return [only(job.payloads(index)) for index in range(len(payloads))]


def only(rows):
    assert len(rows) == 1
    return rows[0]


@pytest.mark.skipif(
    not os.environ.get("ASYA_FULL_SIZE"), reason="the whole year (make test-full); a sample is compared too"
)
def test_the_statistics_of_the_whole_year_agree_with_pandas(run, data_folder):
    payload = write_dataset(data_folder, None)

    result = run(payload)

    assert_agrees(result, data_folder)
    assert result["origins"] == ["EWR", "JFK", "LGA"]
    assert [row["airport"] for row in result["statistics"]["by_airport"]] == ["EWR", "JFK", "LGA"]
    assert result["rows_in"] == 336_776
    assert result["statistics"]["worst_routes"]
    json.dumps(result, allow_nan=False)


def test_a_sample_agrees_with_pandas(run, data_folder):
    assert_agrees(run(write_dataset(data_folder, 300)), data_folder)


def test_flights_that_name_no_airport_are_counted_too(run, dataset):
    rows = [*flights_of(2), *flights_of(3, origin="NA"), *flights_of(4, origin="JFK", **CANCELLED)]
    statistics = run(dataset(rows))["statistics"]
    airports = [(row["airport"], row["name"], row["flights"]) for row in statistics["by_airport"]]
    assert airports == [(None, None, 3), ("EWR", None, 2), ("JFK", None, 4)]
    carrier = only(statistics["by_carrier"])
    assert (carrier["flights"], carrier["cancelled"], carrier["mean_arr_delay"]) == (9, 4, 11.0)
    assert statistics["by_airport"][2]["p95_arr_delay"] is None


def test_a_job_adds_to_the_payload_and_changes_nothing(spark, dataset, tmp_path):
    payload = {**dataset(flights_of(3)), "note": ["kept"]}
    before = json.loads(json.dumps(payload))

    cleaned = flights.clean_flights(spark, payload)
    [airports] = load_handlers().split_by_airport(cleaned)
    [result] = statistics_of(spark, tmp_path / "run", airports.items)

    assert payload == before
    assert cleaned.items() >= before.items()
    assert cleaned.keys() - before.keys() == {"clean", "rows_in", "duplicates", "cancelled", "origins"}
    assert result.items() >= airports.items[0].items()
    assert result.keys() - airports.items[0].keys() == {"name", "statistics", "counts"}


def test_the_envelopes_of_a_run_may_have_several_data_sets(spark, dataset, data_folder, tmp_path, monkeypatch):
    """The airports of each are computed from its own flights, and an airport without flights fails alone."""
    first = dataset(flights_of(2))
    second = {**first, "flights": write_csv(data_folder, "raw/second.csv", flights_of(3, origin="JFK"))}
    tables = [flights.clean_flights(spark, first)]
    monkeypatch.setattr("flights.cleaning.context", lambda: SimpleNamespace(id="task/2"))
    tables.append(flights.clean_flights(spark, second))
    asked = [(0, "EWR"), (1, "JFK"), (1, "EWR")]
    payloads = [
        {"airport": airport, **{name: tables[which][name] for name in ("clean", "airlines", "airports", "weather")}}
        for which, airport in asked
    ]
    settings = {"job": STATISTICS.job, "payload_schema": STATISTICS.payload_schema}
    job = Run(spark, tmp_path / "run", payloads, shape="dataframe", **settings)
    found = [only(only(job.payloads(index))["statistics"]["weather"])["flights"] for index in (0, 1)]
    assert found == [2, 3]
    assert job.heads[2].error.message == "no flight leaves from EWR"


def test_clean_flights_are_parquet_by_month_under_the_envelope(spark, data_folder, dataset):
    payload = dataset([*flights_of(2, month=1), *flights_of(3, month=12)])

    clean = flights.clean_flights(spark, payload)["clean"]

    assert clean.startswith("clean/task%2F1/")
    assert {path.parent.name for path in (data_folder / clean).rglob("*.parquet")} == {"month=1", "month=12"}
    assert len(list((data_folder / clean).rglob("*.parquet"))) == 2
    table = spark.read.parquet(f"file://{data_folder}/{clean}")
    types = dict(table.dtypes)
    assert (types["month"], types["dep_time"], types["arr_delay"]) == ("int", "int", "double")
    assert (types["cancelled"], types["time_hour"]) == ("boolean", "string")


def test_running_again_replaces(spark, data_folder, dataset):
    payload = dataset(flights_of(4))
    first = flights.clean_flights(spark, payload)
    assert flights.clean_flights(spark, payload) == first
    assert spark.read.parquet(f"file://{data_folder}/{first['clean']}").count() == 4


def test_only_fully_identical_rows_are_duplicates(run, dataset):
    rows = [FLIGHT, FLIGHT, {**FLIGHT, "minute": 16}, {**FLIGHT, "tailnum": "NA"}, {**FLIGHT, "tailnum": "NA"}]
    result = run(dataset(rows))
    assert (result["rows_in"], result["duplicates"]) == (5, 2)
    assert only(result["statistics"]["by_hour"])["flights"] == 3


def test_a_group_without_values_gives_null(run, dataset):
    rows = [*flights_of(2), *flights_of(3, carrier="ZZ", **CANCELLED)]
    result = run(dataset(rows))
    assert result["cancelled"] == 3
    united, unnamed = result["statistics"]["by_carrier"]
    assert united == {
        "carrier": "UA",
        "name": "United",
        "flights": 2,
        "cancelled": 0,
        "mean_dep_delay": 2.0,
        "mean_arr_delay": 11.0,
        "p95_arr_delay": 11.0,
    }
    assert unnamed == {
        "carrier": "ZZ",
        "name": None,
        "flights": 3,
        "cancelled": 3,
        "mean_dep_delay": None,
        "mean_arr_delay": None,
        "p95_arr_delay": None,
    }


def test_a_diverted_flight_departed_but_has_no_arrival_delay(run, dataset):
    rows = [*flights_of(1, arr_delay=30), *flights_of(1, arr_delay="NA", arr_time="NA", flight=9)]
    carrier = only(run(dataset(rows))["statistics"]["by_carrier"])
    assert (carrier["flights"], carrier["cancelled"], carrier["mean_arr_delay"]) == (2, 0, 30.0)


def test_percentiles_interpolate(run, dataset):
    rows = [{**FLIGHT, "flight": delay, "arr_delay": delay} for delay in (0, 10, 20, 100)]
    assert only(run(dataset(rows))["statistics"]["by_carrier"])["p95_arr_delay"] == pytest.approx(88.0)


def test_weather_is_wet_dry_or_unknown(run, dataset):
    rows = [
        *flights_of(1, hour=5),  # two weather rows: the first, dry one counts
        *flights_of(2, hour=6),  # rain
        *flights_of(3, hour=7),  # a weather row without precipitation
        *flights_of(4, hour=8),  # no weather row
        *flights_of(5, hour=5, origin="JFK"),  # nor for this airport
    ]
    weather = [
        WEATHER,
        {**WEATHER, "precip": 0.5},
        {**WEATHER, "hour": 6, "precip": 0.01},
        {**WEATHER, "hour": 7, "precip": "NA"},
    ]
    result = run(dataset(rows, weather=weather))
    counts = [(row["weather"], row["flights"]) for row in result["statistics"]["weather"]]
    assert counts == [("dry", 1), ("unknown", 12), ("wet", 2)]


def test_worst_routes_need_a_year_of_flights_and_break_ties_by_name(run, dataset):
    rows = [
        *flights_of(365, origin="JFK", dest="IAH"),
        *flights_of(365, origin="EWR", dest="SFO"),
        *flights_of(365, origin="EWR", dest="BOS"),
        *flights_of(365, origin="LGA", dest="MIA", arr_delay=50),
        *flights_of(365, origin="LGA", dest="DEN", **CANCELLED),  # no delay at all: last
        *flights_of(364, origin="LGA", dest="ORD", arr_delay=500),
    ]
    routes = run(dataset(rows))["statistics"]["worst_routes"]
    assert [(row["origin"], row["dest"], row["dest_name"]) for row in routes] == [
        ("LGA", "MIA", None),
        ("EWR", "BOS", None),
        ("EWR", "SFO", None),
        ("JFK", "IAH", "Houston"),
        ("LGA", "DEN", None),
    ]


def test_at_most_twenty_worst_routes(run, dataset):
    rows = [row for number in range(22) for row in flights_of(365, dest=f"D{number:02d}", arr_delay=number)]
    routes = run(dataset(rows))["statistics"]["worst_routes"]
    assert [row["dest"] for row in routes] == [f"D{number:02d}" for number in range(21, 1, -1)]


def test_columns_are_found_by_name_and_numbers_as_pandas_writes_them(run, data_folder, dataset):
    """A pandas round trip: an index column, floats where values are missing, empty fields, another order."""
    payload = dataset([*flights_of(2), *flights_of(3, **CANCELLED), *flights_of(1, arr_delay="NaN")])
    wanted = run(payload)
    table = pd.read_csv(data_folder / payload["flights"])
    table[sorted(table.columns)].to_csv(data_folder / "raw/pandas.csv.gz")
    found = run({**payload, "flights": "raw/pandas.csv.gz"})
    assert found["statistics"] == wanted["statistics"]
    assert (found["rows_in"], found["cancelled"]) == (6, 3)


@pytest.mark.parametrize(
    ("table", "column"), [("flights", "arr_delay"), ("airlines", "name"), ("airports", "faa"), ("weather", "precip")]
)
def test_a_missing_column_is_named_with_its_file(run, data_folder, dataset, table, column):
    payload = dataset(flights_of(2))
    path = data_folder / payload[table]
    pd.read_csv(path).drop(columns=column).to_csv(path, index=False)
    with pytest.raises(ValueError, match=rf"raw/{table}\.csv lacks the column\(s\) {column}; it has "):
        run(payload)


@pytest.mark.parametrize("change", [{"dep_time": "late"}, {"tailnum": "N1,more"}], ids=["type", "width"])
def test_a_row_that_does_not_fit_is_shown_with_its_file(spark, data_folder, dataset, change):
    """Read as null, the departure time would have made a cancelled flight of it."""
    payload = dataset([*flights_of(2), {**FLIGHT, **change}])
    path = data_folder / payload["flights"]
    path.write_text(path.read_text().replace('"', ""))
    with pytest.raises(
        PySparkException, match=r"raw/flights\.csv has a row that does not fit its columns: 2013,.*(late|more)"
    ):
        flights.clean_flights(spark, payload)


def test_a_file_with_only_a_header_is_refused(spark, data_folder, dataset):
    payload = dataset(flights_of(1))
    path = data_folder / payload["flights"]
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(ValueError, match=r"raw/flights\.csv has a header but no flights"):
        flights.clean_flights(spark, payload)


def test_an_empty_file_is_refused(spark, data_folder, dataset):
    payload = dataset(flights_of(1))
    (data_folder / "raw/empty.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(ValueError, match=r"raw/empty\.csv\.gz lacks the column"):
        flights.clean_flights(spark, {**payload, "flights": "raw/empty.csv.gz"})


def test_a_missing_file_is_named(spark, dataset):
    payload = {**dataset(flights_of(1)), "flights": "raw/none.csv.gz"}
    with pytest.raises(AnalysisException, match=r"raw/none\.csv\.gz"):
        flights.clean_flights(spark, payload)


@pytest.mark.parametrize("reference", ["../other/flights.csv", "s3://elsewhere/flights.csv"])
def test_a_reference_out_of_the_data_is_refused(spark, dataset, reference):
    with pytest.raises(ValueError, match="is not a reference"):
        flights.clean_flights(spark, {**dataset(flights_of(1)), "flights": reference})
