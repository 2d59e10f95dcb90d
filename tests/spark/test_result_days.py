"""The index of results: compaction of a day into one Parquet folder, each end once (`protocol §11`)."""

import json
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from asya.ends.results import ResultRow, recent_object, result_row
from asya.protocol.codec import decode
from asya_spark import result_days
from tests.doubles.envelopes import message, status
from tests.paths import PROJECT

pytestmark = pytest.mark.spark

TODAY = datetime.now(UTC).date()
DAY = (TODAY - timedelta(days=1)).isoformat()
DOCUMENT = PROJECT / "docs" / "how-to" / "query-results.md"


@pytest.fixture
def results(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ASYA_RESULTS_URI", f"file://{tmp_path}/")
    return tmp_path


def row(
    envelope_id: str, day: str = DAY, *, by: str = "x-sink", generation: int = 0, phase: str = "succeeded"
) -> ResultRow:
    headers = {"x-asya-generation": generation} if generation else {}
    block = status(phase=phase, created_at=f"{day}T10:00:00Z", updated_at=f"{day}T10:00:01.500000Z")
    envelope = decode(message(id=envelope_id, status=block, headers=headers))
    uri = f"s3://bucket/results/{phase}/{envelope_id}.json"
    return result_row(envelope, namespace="shop", result_uri=uri, recorded_by=by, now=datetime.now(UTC))


def put(results: Path, *rows: ResultRow, day: str = DAY) -> None:
    """Writes rows as x-sink does for one batch."""
    key, body = recent_object(day, rows)
    (results / key).parent.mkdir(parents=True, exist_ok=True)
    (results / key).write_bytes(body)


def days(spark, results: Path, *requested: str) -> list[dict]:
    return result_days.compact(spark, {"days": list(requested) or [DAY]})["compacted"]


def table(spark, results: Path):
    return spark.read.parquet(f"file://{results}/index/days")


def killed(*_):
    raise OSError("killed")


@pytest.mark.rule("11.index.compacted")
def test_every_row_is_there_once_with_its_day(spark, results):
    put(results, row("a"), row("b"))
    put(results, row("b"), row("c", phase="failed"))  # b's message was delivered twice, in another batch
    put(results, row("c", phase="failed", by="x-sump"))  # failed envelopes pass x-sump too
    assert days(spark, results) == [{"day": DAY, "rows": 3}]
    rows_by_key = {item.id: item for item in table(spark, results).collect()}
    assert sorted(rows_by_key) == ["a", "b", "c"]
    assert (rows_by_key["c"].recorded_by, rows_by_key["c"].phase, rows_by_key["a"].seconds) == ("x-sink", "failed", 1.5)
    assert {str(item.dt) for item in rows_by_key.values()} == {DAY}


@pytest.mark.rule("11.index.compacted")
def test_a_day_is_compacted_again_with_what_came_late(spark, results):
    put(results, row("a"))
    days(spark, results)
    put(results, row("late"))
    assert days(spark, results) == [{"day": DAY, "rows": 2}]
    assert days(spark, results) == [{"day": DAY, "rows": 2}]
    assert table(spark, results).count() == 2
    assert len(list((results / "index/days" / f"dt={DAY}").glob("*.parquet"))) == 1


@pytest.mark.rule("11.index.compacted")
def test_a_repeated_compaction_removes_the_duplicates_of_a_failed_one(spark, results, monkeypatch):
    put(results, row("a"))
    days(spark, results)
    with monkeypatch.context() as patch:
        patch.setattr(result_days.HadoopFiles, "remove", killed)
        with pytest.raises(OSError, match="killed"):
            days(spark, results)
    assert table(spark, results).count() == 2  # twice, never zero
    days(spark, results)
    assert table(spark, results).count() == 1


def test_a_later_generation_is_a_row_of_its_own(spark, results):
    put(results, row("a", phase="failed"), row("a", generation=1))
    assert days(spark, results) == [{"day": DAY, "rows": 2}]


def test_a_day_without_rows_is_left_as_it_is(spark, results):
    put(results, row("a"))
    days(spark, results)
    for path in (results / "index/recent").rglob("*.jsonl"):  # as the lifecycle rule does after 30 days
        path.unlink()
    assert days(spark, results) == [{"day": DAY, "rows": None}]
    assert table(spark, results).count() == 1


def test_a_line_that_is_no_row_does_no_harm(spark, results):
    put(results, row("a"))
    (results / "index/recent" / f"dt={DAY}" / "other.jsonl").write_text('junk\n{"id": null}\n{"more": 1}\n')
    assert days(spark, results) == [{"day": DAY, "rows": 1}]


def test_the_schedule_asks_for_the_days_before_it(spark, results):
    for back in range(5):
        day = (TODAY - timedelta(days=back)).isoformat()
        put(results, row("a", day), day=day)
    rows_by_key = result_days.compact(spark, {"time": f"{TODAY}T00:30:00Z"})["compacted"]
    assert rows_by_key == [{"day": (TODAY - timedelta(days=back)).isoformat(), "rows": 1} for back in (3, 2, 1)]


@pytest.mark.parametrize("day", ["yesterday", "2025-13-01", 7, "2025-11-18/../x"])
def test_a_malformed_day_is_refused(spark, results, day):
    with pytest.raises(ValueError, match="is not a day such as"):
        days(spark, results, day)


def test_a_day_whose_objects_may_have_expired_is_refused():
    assert result_days.check_day("2025-11-01", date(2025, 11, 29)) == "2025-11-01"
    with pytest.raises(ValueError, match="may have expired"):
        result_days.check_day("2025-11-01", date(2025, 11, 30))


@pytest.mark.rule("11.index.documented")
def test_the_columns_are_those_that_x_sink_writes():
    assert tuple(result_days.COLUMNS) == ResultRow.__struct_fields__


@pytest.mark.rule("11.index.documented")
def test_the_documented_tables_have_these_columns():
    tables = re.findall(r"CREATE EXTERNAL TABLE[^(]*\((.*?)\)\s*PARTITIONED BY", DOCUMENT.read_text(), re.DOTALL)
    assert len(tables) == 2
    for columns in tables:
        rows_by_key = dict(line.strip().rstrip(",").split(" ", 1) for line in columns.strip().splitlines())
        assert {name.strip("`"): kind for name, kind in rows_by_key.items()} == dict(result_days.COLUMNS)


def test_rows_are_json_that_athena_reads():
    _, body = recent_object(DAY, [row("a")])
    assert json.loads(body)["route"] == ["prep"]
