"""Imports of jobs that no package of a run brings are noted, with file and line, and no others."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from asya_infra.imports.check import load_importable
from asya_infra.imports.jobs import job_notes
from asya_infra.mesh_file import load_mesh

LOAD = "\n\ndef load(spark, payload): return payload\n"


def notes_of(folder: Path, jobs: Mapping[str, str], spark: str = "job: lake.load", more: str = "") -> list[str]:
    for name, text in jobs.items():
        path = folder / "spark_jobs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "mesh.yaml").write_text(f"namespace: shop\nactors:\n  load: {{spark: {{{spark}}}{more}}}\n")
    return [note.replace(f"{folder}/", "") for note in job_notes(load_mesh(folder / "mesh.yaml"), folder / "build")]


def test_a_missing_package_is_noted_with_its_place(tmp_path: Path) -> None:
    assert notes_of(tmp_path, {"lake.py": f"import json\nimport pandas as pd{LOAD}"}) == [
        "spark_jobs/lake.py:2: no package of spark_jobs/requirements.txt brings 'pandas', which the job of actor 'load' imports; "
        "name its package there, because AWS documents no list of the packages in its images"
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "import os.path, zoneinfo",
        "from pyspark.sql import functions as F\nimport py4j.protocol, asya_spark.tables\nfrom asya_spark import data",
        "import shared.common\nfrom shared import common\nfrom rates import RATES",
        "try:\n    import pandas\nexcept ImportError:\n    pandas = None",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas",
        "def pandas():\n    import pandas\n    return pandas",
    ],
)
def test_imports_that_a_run_has_or_can_do_without(tmp_path: Path, statement: str) -> None:
    files = {"shared/common.py": "", "rates.py": "RATES = {}\n"}
    assert notes_of(tmp_path, {**files, "lake.py": statement + LOAD}) == []


@pytest.mark.parametrize(
    ("statement", "file"),
    [
        ("import shared.frames", "shared/frames.py"),
        ("from shared import frames", "shared/frames.py"),
        ("from shared.frames import sums", "shared/frames.py"),
        ("import shared.deep.inner", "shared/deep/__init__.py"),
        ("from shared.frames import *", "shared/frames.py"),
        ("with open(__file__):\n    import shared.frames", "shared/frames.py"),
    ],
)
def test_modules_that_a_job_imports_are_followed(tmp_path: Path, statement: str, file: str) -> None:
    files = {f"shared/{name}": "" for name in ("__init__.py", "frames.py", "deep/__init__.py", "deep/inner.py")}
    files |= {file: "\nfrom numpy import array\n", "unused.py": "import scipy\n", "lake.py": statement + LOAD}
    assert [note.partition(": ")[0] for note in notes_of(tmp_path, files)] == [f"spark_jobs/{file}:2"]


def test_relative_imports_are_followed(tmp_path: Path) -> None:
    files = {
        "shop/__init__.py": "",
        "shop/jobs/__init__.py": "",
        "shop/jobs/lake.py": f"from ..frames import sums\nfrom . import near{LOAD}",
        "shop/frames.py": "import numpy\nsums = 1\n",
        "shop/jobs/near.py": "import scipy\n",
    }
    found = notes_of(tmp_path, files, "job: shop.jobs.lake.load")
    assert [note.partition(": ")[0] for note in found] == [
        "spark_jobs/shop/frames.py:1",
        "spark_jobs/shop/jobs/near.py:1",
    ]


@pytest.mark.parametrize(
    ("spark", "more"),
    [
        ('job: lake.load, py_files: ["s3://code/shared.zip"]', ""),
        ('job: lake.load, archives: ["s3://code/python.tar.gz#python"]', ""),
        ("job: lake.load", ", env: {PYTHONPATH: ./more}"),
        ("job: lake.load, conf: {spark.pyspark.python: /opt/python}", ""),
    ],
)
def test_a_job_with_packages_of_its_own_is_left_out(tmp_path: Path, spark: str, more: str) -> None:
    assert notes_of(tmp_path, {"lake.py": f"import pandas{LOAD}"}, spark, more) == []


@pytest.mark.slow
def test_packages_bring_modules_of_other_names(tmp_path: Path) -> None:
    """`python-dateutil` brings `dateutil`."""
    jobs = {"lake.py": f"import dateutil.parser, pandas{LOAD}", "requirements.txt": "python-dateutil\n"}
    [note] = notes_of(tmp_path, jobs)
    assert "brings 'pandas'" in note
    assert (
        note.replace("spark_jobs/", f"{tmp_path}/spark_jobs/")
        in load_importable(tmp_path / "mesh.yaml", None, tmp_path / "build").notes
    )


def test_packages_that_cannot_be_installed_are_told(tmp_path: Path) -> None:
    jobs = {"lake.py": f"import pandas{LOAD}", "requirements.txt": "./gone.whl\n"}
    [note] = notes_of(tmp_path, jobs)
    assert note.startswith("mesh.yaml: no import of a job was looked up, so a missing package is not found: ")
