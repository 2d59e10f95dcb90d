"""The job of `docs/how-to/pass-large-data.md` writes what it says, also when it runs twice."""

import sys

import pytest

from tests.doubles.snippets import write_project
from tests.spark.job_run import Run

pytestmark = pytest.mark.spark


def test_the_job_of_the_page_may_run_twice(spark, tmp_path, data_folder, monkeypatch):
    write_project("pass-large-data.md", tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "jobs")
    monkeypatch.delitem(sys.modules, "cleaning", raising=False)
    (data_folder / "orders.csv").write_text("id,price\n1,10\n1,10\n2,20\n")

    for attempt in ("1", "2"):
        run = Run(spark, tmp_path / attempt, [{"orders": "orders.csv"}], job="cleaning.clean")
        (result,) = run.payloads(0)
        assert (result["clean"], result["rows"]) == ("clean/e0/orders", 2)

    assert spark.read.parquet(f"file://{data_folder}/{result['clean']}").count() == 2
