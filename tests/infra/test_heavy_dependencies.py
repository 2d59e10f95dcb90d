"""The packages of docs/how-to/package-job-dependencies.md in the environment that local jobs run in."""

import subprocess
import tarfile
from pathlib import Path

from asya_infra.build.jobs import build_jobs
from asya_infra.build.packages import Target
from asya_local.emr.drivers.job_environment import job_python
from asya_local.emr.runner import unpack_once


def run(python: Path, code: str, *path: Path) -> None:
    """Run code as the driver does: by the environment's Python, with folders in front of its path."""
    start = f"import sys; sys.path[:0] = {[str(each) for each in path]!r}\n"
    result = subprocess.run([str(python), "-P", "-c", start + code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_jobs_import_pure_and_compiled_packages_from_the_archive(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "requirements.txt").write_text("jmespath\nmsgspec\n")
    (jobs / "heavy.py").write_text("import jmespath\n\ndef first(spark, x): return jmespath.search('a[0]', x)\n")
    files = build_jobs(tmp_path / "build", Target(interpreter=job_python(tmp_path / "build")), jobs)
    assert files.packages is not None
    packages, code_folder = (unpack_once(each.archive, tmp_path / "archives") for each in (files.packages, files.jobs))
    code = (
        "import heavy, jmespath, msgspec\n"
        f"assert all(module.__file__.startswith({str(packages)!r}) for module in (jmespath, msgspec))\n"
        "assert heavy.first(None, {'a': [7]}) == 7\n"
        "assert msgspec.json.decode(b'[1]') == [1]"
    )
    run(job_python(tmp_path / "build"), code, code_folder, packages)


def test_local_jobs_have_pyspark_and_no_other_package(tmp_path: Path) -> None:
    """This project's own packages would hide that EMR Serverless lacks them."""
    code = (
        "import importlib, pyspark.sql, py4j\n"
        "for name in ('pydantic', 'pandas', 'numpy', 'boto3', 'msgspec', 'pytest', 'pip', 'asya', 'asya_local'):\n"
        "    try: importlib.import_module(name)\n"
        "    except ModuleNotFoundError: continue\n"
        "    raise AssertionError(name)"
    )
    run(job_python(tmp_path / "build"), code)


def test_the_job_library_needs_pyspark_alone(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    python = job_python(tmp_path / "build")
    files = build_jobs(tmp_path / "build", Target(interpreter=job_python(tmp_path / "build")), jobs)
    modules = sorted(f"asya_spark.{path.stem}" for path in (files.library / "asya_spark").glob("[!_]*.py"))
    run(python, f"import importlib\nfor name in {modules!r}: importlib.import_module(name)", files.library)


def test_the_environment_is_made_once(tmp_path: Path) -> None:
    python = job_python(tmp_path)
    assert job_python(tmp_path) == python
    assert [path.name for path in tmp_path.iterdir()] == [python.parents[1].name]


def test_an_archive_is_unpacked_once(tmp_path: Path) -> None:
    archive = tmp_path / "some.tar.gz"
    (tmp_path / "model").write_text("weights")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "model", "model")
    first = unpack_once(archive, tmp_path / "archives")
    assert (first / "model").read_text() == "weights"
    assert unpack_once(archive, tmp_path / "archives") == first
    assert [path.name for path in (tmp_path / "archives").iterdir()] == [first.name]
