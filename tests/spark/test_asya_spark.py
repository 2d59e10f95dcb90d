"""The job side of a run: from the manifest to the results and one commit (`protocol §10`)."""

import json
import platform
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from asya.protocol.job_runs import Journal
from asya_spark import context, data
from asya_spark.heartbeat import spark_progress
from asya_spark.main import run
from asya_spark.manifest import ManifestError
from tests.spark.job_run import Run, member

pytestmark = pytest.mark.spark


@pytest.mark.rule("10.as-a-handler")
def test_every_kind_of_outcome_stands_alone(spark, tmp_path):
    kinds = ["count", "none", "raise", "not-json", "exit", "list", "async", "async-generator"]

    done = Run(spark, tmp_path, [{"do": kind, "n": 5} for kind in kinds])

    ends = {kind: (done.heads[i].end, done.payloads(i)) for i, kind in enumerate(kinds)}
    assert ends == {
        "count": ("done", [{"rows": 5}]),
        "none": ("done", []),
        "raise": ("failed", []),
        "not-json": ("failed", []),
        "exit": ("crashed", []),
        "list": ("done", [[1, 2]]),
        "async": ("done", [{"n": 5}]),
        "async-generator": ("done", [{"id": "e7"}, {"n": 5}]),
    }
    raised = done.heads[2].error
    assert (raised.type, raised.message, raised.mro) == ("ValueError", "bad input 5", ("Exception",))
    assert "in _raise" in raised.traceback
    assert "run_within" not in raised.traceback
    assert done.heads[3].error.type == "processing_error"
    assert "$.a[1]" in done.heads[3].error.message
    assert done.heads[4].error.type == "SystemExit"
    assert done.commit.error is None


@pytest.mark.rule("10.as-a-handler")
def test_generators_speak_the_abi_and_changes_apply_to_later_frames(spark, tmp_path):
    done = Run(spark, tmp_path, [{"do": "generator", "n": 9}])

    first, second = done.frames[0]
    assert done.payloads(0) == [{"first": "e0"}, {"second": 9}]
    assert (first.next, first.headers) == (None, {})
    assert second.next == ("extra", "b")
    assert {name: bytes(raw) for name, raw in second.headers.items()} == {"colour": b'"blue"'}


@pytest.mark.parametrize(("streamed", "frames"), [(True, 2), (False, 0)])
def test_frames_before_an_error_count_only_if_streamed(spark, tmp_path, streamed, frames):
    done = Run(spark, tmp_path, [{"do": "generator", "n": 1, "then": "raise"}], streamed=streamed)

    assert (done.heads[0].end, done.heads[0].frames, done.heads[0].error.type) == ("failed", frames, "KeyError")


def test_a_large_envelope_is_read_from_its_own_object_and_the_context_tells_of_it(spark, tmp_path):
    inline = member(0, {"do": "context"})
    (tmp_path / "pending").mkdir()
    (tmp_path / "pending" / "x.json").write_bytes(bytes(inline.envelope))
    away = msgspec.structs.replace(inline, envelope=msgspec.UNSET, envelope_key="pending/x.json")

    done = Run(spark, tmp_path, [away])

    attempt = done.commit.attempt
    assert done.payloads(0) == [
        {"id": "e0", "scratch": f"scratch/heavy/0000000007/{attempt}/0/", "colour": "red", "attempt": 2}
    ]
    with pytest.raises(RuntimeError, match="no envelope at work"):
        context()


def test_the_journal_names_the_member_at_work_before_it_starts(spark, tmp_path):
    done = Run(spark, tmp_path, [{"do": "none"}] * 3)

    copies = []
    for copy in range(2):
        with open(f"{done.attempt}journal-{copy}.json", "rb") as file:
            copies.append(msgspec.json.decode(file.read(), type=Journal))
    # first the start, then the three members, then no member
    assert {(journal.sequence, journal.at_work) for journal in copies} == {(4, (2,)), (5, ())}
    assert {journal.stage for journal in copies} == {"working"}


def test_parts_hold_whole_envelopes_in_order(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.attempt.PART_BYTES", 300)

    done = Run(spark, tmp_path, [{"do": "count", "n": n} for n in range(10)])

    assert len(done.commit.parts) > 2
    assert [done.payloads(n) for n in range(10)] == [[{"rows": n}] for n in range(10)]
    spans = [(part.first, part.last) for part in done.commit.parts]
    assert [first for first, _ in spans] == [0, *(last + 1 for _, last in spans[:-1])]


@pytest.mark.parametrize(("job", "problem"), [("nowhere", "has no 'nowhere'"), ("BEHAVIORS", "not a function")])
def test_a_job_that_cannot_be_loaded_is_told_for_all(spark, tmp_path, job, problem):
    done = Run(spark, tmp_path, [{"do": "none"}], job=job)

    assert done.commit.parts == ()
    assert problem in done.commit.error.message


def test_a_missing_manifest_is_named(spark, tmp_path):
    with pytest.raises(ManifestError, match="there is no file"):
        run(spark, f"file://{tmp_path}/runs/heavy/0000000001/manifest.json")


@pytest.mark.rule("10.fly")
def test_7_partials_of_a_job_are_written_in_order(spark, tmp_path):
    done = Run(spark, tmp_path, [{"do": "fly"}, {"do": "fly-by-abi"}])

    assert done.partials() == [(0, 0, {"text": "first"}), (0, 1, {"text": "second"}), (1, 0, {"text": "by the ABI"})]
    assert done.heads[0].end == done.heads[1].end == "done"


def test_7_a_partial_that_is_no_object_fails_the_job(spark, tmp_path):
    done = Run(spark, tmp_path, [{"do": "fly-badly"}])

    assert (done.heads[0].error.type, done.partials()) == ("ValueError", [])


@pytest.mark.rule("10.progress")
def test_10_a_heartbeat_lists_stages_and_rows(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.heartbeat.TICK_SECONDS", 0.1)

    copy = tmp_path / "copy.json"

    done = Run(
        spark, tmp_path, [{"do": "none"}, {"do": "wait-for-heartbeat", "folder": str(tmp_path), "copy": str(copy)}]
    )

    assert done.heads[1].end == "done"
    last = json.loads(copy.read_text())
    assert (last["at_work"], last["done"]) == ([1], 1)
    (stage,) = last["stages"]
    assert stage["tasks"] == 4
    assert {"done", "rows_read", "rows_written", "name", "stage"} <= stage.keys()
    assert 0 <= (datetime.fromisoformat(last["at"]) - datetime.fromisoformat(stage["began_at"])).total_seconds() < 3600


@pytest.mark.rule("10.death.told")
def test_10_a_failing_driver_writes_its_error(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.main.run_payloads", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        Run(spark, tmp_path, [{"do": "none"}])

    (error,) = tmp_path.rglob("error.json")
    assert json.loads(error.read_text())["type"] == "ZeroDivisionError"
    (journal,) = tmp_path.rglob("journal-*.json")
    assert json.loads(journal.read_text())["stage"] == "starting"


def test_references_resolve_against_the_data_uri(data_folder):
    assert data.uri("raw/a.csv") == f"file://{data_folder}/raw/a.csv"
    with pytest.raises(ValueError, match="is not a reference"):
        data.uri("../secret")


def test_the_job_side_needs_nothing_but_the_standard_library_and_pyspark():
    forbid = "import sys; sys.modules['msgspec'] = sys.modules['boto3'] = sys.modules['pydantic'] = None; "
    subprocess.run([sys.executable, "-c", forbid + "import asya_spark.main"], check=True, timeout=60)


@pytest.mark.rule("10.python")
def test_10_a_run_on_another_python_fails_at_its_start(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ASYA_JOB_PYTHON", "2.7")

    done = Run(spark, tmp_path, [{"do": "none"}, {"do": "none"}])

    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert done.heads == {}
    assert done.commit.error.type == "asya_spark.python_version.WrongPythonError"
    assert done.commit.error.message.startswith(f"the job runs on Python {running} (")
    assert "built for Python 2.7" in done.commit.error.message
    assert f"Python {sys.version}" in capsys.readouterr().out


@pytest.mark.rule("10.python")
@pytest.mark.parametrize("expected", [None, f"{sys.version_info.major}.{sys.version_info.minor}"])
def test_10_the_commit_names_the_python(spark, tmp_path, monkeypatch, expected):
    if expected:
        monkeypatch.setenv("ASYA_JOB_PYTHON", expected)
    done = Run(spark, tmp_path, [{"do": "none"}])
    assert done.commit.error is None
    assert json.loads(Path(f"{done.attempt}commit.json").read_text())["python"] == platform.python_version()


def test_spark_lists_its_executors_with_the_driver(spark, monkeypatch):
    """A local driver has none; on a cluster the same list counts."""
    assert spark_progress(spark.sparkContext)["executors"] is None
    monkeypatch.setattr(spark.sparkContext, "master", "yarn")
    assert spark_progress(spark.sparkContext)["executors"] == 0
