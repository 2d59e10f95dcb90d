"""The heavy actors of `asya init` and `asya new` run, and their tests pass, on the Spark session of the other tests."""

import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from asya.testing import Mesh
from asya_cli.main import app

pytestmark = pytest.mark.spark


def test_the_tests_of_the_jobs_pass(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["init", "shop", "--template", "spark"],
        ["new", "spark-actor", "add-up", "--mesh", "shop/mesh.yaml"],
    ):
        assert CliRunner().invoke(app, arguments).exit_code == 0
    shop = tmp_path / "shop"
    monkeypatch.syspath_prepend(shop / "jobs")
    fixtures: dict[str, Any] = {"asya_spark_session": spark, "asya_mesh": Mesh(shop / "mesh.yaml")}
    tests = [
        function
        for file in ("test_sales.py", "test_add_up.py")
        for name, function in runpy.run_path(str(shop / "tests" / file)).items()
        if name.startswith("test_")
    ]
    assert len(tests) == 3
    for function in tests:
        function(**{name: fixtures[name] for name in inspect.signature(function).parameters})
