"""The pipeline of `docs/how-to/nightly-lake.md` does what the page says."""

import runpy
import sys

import pytest

from tests.doubles.snippets import write_project

pytestmark = pytest.mark.spark


def test_the_tests_of_the_page_pass(spark, tmp_path, monkeypatch):
    write_project("nightly-lake.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    for module in ("lake", "checks"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    runpy.run_path("test_lake.py")["test_a_month_is_filled_and_a_bad_day_repaired"](spark)
