"""What the calls of a job share, and what they do not (`protocol §10`, inside the job)."""

import locale
import os
import re
import sys
from pathlib import Path

import pytest

from asya.tasks.failures import kind_of
from asya_spark.calls.sessions import ContextStoppedError, Sessions, warm_up
from tests.spark import session_jobs
from tests.spark.job_run import Run

pytestmark = pytest.mark.spark

JOBS = "tests.spark.session_jobs"
PARALLEL = 8


@pytest.mark.rule("10.session")
@pytest.mark.parametrize("what", ["spark", "session", "context", "with"])
def test_10_a_job_that_stops_spark_harms_no_envelope(spark, tmp_path, what):
    done = Run(spark, tmp_path, [{"stop": what, "n": n} for n in range(3)], job=f"{JOBS}.stops_spark")

    assert [done.payloads(index) for index in range(3)] == [[{"rows": n}] for n in range(3)]


@pytest.mark.rule("10.session")
def test_10_no_envelope_finds_what_another_one_left_in_its_session(spark, tmp_path):
    done = Run(spark, tmp_path, [{"name": name} for name in "abc"], job=f"{JOBS}.leaves_all_behind")

    for index in range(3):
        assert done.payloads(index) == [
            {"views": [], "ansi": "true", "function": False, "cached": 0, "global_views": [], "streams": 0}
        ]
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


@pytest.mark.rule("10.process")
def test_10_no_envelope_finds_what_another_one_changed_of_the_process(spark, tmp_path, capsys):
    process = {"path": os.environ["PATH"], "folder": os.getcwd()}
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.tenant.linkFallback", tmp_path.as_uri())
    size = hadoop.get("io.file.buffer.size")

    payloads = [{**process, "tenant": tenant} for tenant in ("a", None, "b", None)]
    done = Run(spark, tmp_path, payloads, job=f"{JOBS}.changes_its_process")

    clean = {"variable": None, "own": True, "of_workers": [None], "folder": True, "hadoop": [None, size]}
    clean["of_file_system"] = None
    assert [done.payloads(index) for index in range(4)] == [["a"], [clean], ["b"], [clean]]
    assert {"path": os.environ["PATH"], "folder": os.getcwd()} == process
    said = capsys.readouterr().out
    assert "Hadoop settings (io.file.buffer.size, own.tenant) of the process" in said
    assert "variables (PATH, TENANT)" in said


@pytest.mark.rule("10.process")
def test_10_no_envelope_finds_the_zone_the_paths_or_the_checkpoints_of_another_one(spark, tmp_path, capsys):
    before = locale.setlocale(locale.LC_CTYPE)
    other = "C" if before != "C" else "C.UTF-8"
    payload = {"locale": other, "folder": str(tmp_path / "checkpoints")}

    done = Run(spark, tmp_path, [payload] * 3, job=f"{JOBS}.changes_the_rest_of_its_process")

    first, *later = [done.payloads(index)[0] for index in range(3)]
    assert (first["path"], first["locale"], first["checkpoints"]) == (False, False, False)
    assert (first["database"], first["property"]) == ("default", None)
    assert later == [first, first]
    assert locale.setlocale(locale.LC_CTYPE) == before
    said = capsys.readouterr().out
    assert "sys.path, the locale, Java's locale and time zone, the folder of checkpoints of the process" in said


@pytest.mark.rule("10.process")
def test_10_what_the_module_of_a_job_sets_at_its_import_holds_for_all_calls(spark, tmp_path, monkeypatch):
    (tmp_path / "sets_at_import.py").write_text(
        "import os, sys\n"
        "os.environ['SET_AT_IMPORT'] = '1'\n"
        "sys.path.append('/set-at-import')\n"
        "def look(spark, payload):\n"
        "    return {'variable': os.environ.get('SET_AT_IMPORT'), 'path': '/set-at-import' in sys.path}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SET_AT_IMPORT", "")
    monkeypatch.delenv("SET_AT_IMPORT")

    done = Run(spark, tmp_path, [{}] * 3, job="sets_at_import.look")

    assert [done.payloads(index)[0] for index in range(3)] == [{"variable": "1", "path": True}] * 3


@pytest.mark.rule("10.process")
def test_10_modules_files_and_javas_properties_stay(spark, tmp_path, monkeypatch):
    """What the page on isolation says of them; a run that shares with none is how a mesh ends it."""
    monkeypatch.setattr("time.left_by_a_call", None, raising=False)
    monkeypatch.setitem(sys.modules, "left_by_a_call", None)
    monkeypatch.delitem(sys.modules, "left_by_a_call")
    file = tmp_path / "left.txt"
    file.write_text("left", encoding="utf-8")
    payloads = [{"name": name, "file": str(file)} for name in "ab"]
    try:
        done = Run(spark, tmp_path, payloads, job=f"{JOBS}.leaves_what_stays")
    finally:
        spark.sparkContext._jvm.java.lang.System.clearProperty("left.by.a.call")

    found = done.payloads(1)[0]
    assert found["files"][-1:] == ["left.txt"]
    assert {**found, "files": []} == {"module": "a", "imported": True, "files": [], "java_property": "a"}


@pytest.mark.rule("10.session")
@pytest.mark.parametrize("shape", ["payload", "dataframe"])
def test_10_code_that_asks_for_the_session_gets_that_of_the_envelope(spark, tmp_path, shape):
    job = "asks_for_the_session" if shape == "payload" else "asks_for_the_session_of_frames"
    done = Run(spark, tmp_path, [{}, {}], job=f"{JOBS}.{job}", shape=shape)

    for index in range(2):
        ((answer,),) = [done.payloads(index)]
        assert set(answer) == set(session_jobs.WAYS)
        assert set(answer.values()) == {"view"}, answer


@pytest.mark.rule("10.parallel")
def test_10_envelopes_at_work_at_the_same_time_share_nothing(spark, tmp_path):
    """Each waits until all are at work, so a run that took one after the other would not end."""
    barrier = str(tmp_path / "barrier")
    payloads = [{"barrier": barrier, "count": PARALLEL, "name": f"e{n}"} for n in range(PARALLEL)]

    done = Run(spark, tmp_path, payloads, job=f"{JOBS}.works_beside_others", parallel=PARALLEL)

    for index in range(PARALLEL):
        name = f"e{index}"
        assert done.heads[index].end == "done", done.heads[index].error
        assert done.payloads(index) == [
            {"view": name, "conf": name, "function": name, "cached": name, "property": name, "pool": f"asya-{index}"}
        ]
    assert not spark.catalog.listTables()


@pytest.mark.rule("10.parallel")
def test_10_a_slow_envelope_keeps_no_other_one_waiting_and_ends_alone(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.calls.time_limit.GRACE_SECONDS", 0.5)
    monkeypatch.setattr("asya_spark.attempt.PART_SECONDS", 0.0)
    release = tmp_path / "released"
    payloads = [{"wait_for": str(release)}, *({"release": str(release), "n": n} for n in range(3))]

    done = Run(spark, tmp_path, payloads, job=f"{JOBS}.waits", parallel=2)

    assert sorted(done.heads) == [0, 1, 2, 3]
    assert {head.end for head in done.heads.values()} == {"done"}
    spans = [(part.first, part.last) for part in done.commit.parts]
    assert spans[-1] == (0, 0)
    assert sorted(spans) != spans


@pytest.mark.rule("10.session.stopped")
@pytest.mark.parametrize("parallel", [1, 2])
def test_10_a_stopped_context_ends_the_process_and_the_journal_names_who_was_at_work(
    spark, tmp_path, monkeypatch, parallel
):
    closed = []

    def is_gone(sessions, session):
        closed.append(session)
        if len(closed) == 2:
            raise ContextStoppedError("gone")
        return close(sessions, session)

    close = Sessions.close
    monkeypatch.setattr(Sessions, "close", is_gone)

    with pytest.raises(ContextStoppedError):
        Run(spark, tmp_path, [{"n": n} for n in range(4)], job=f"{JOBS}.counts", parallel=parallel)

    journal, error = Run.died(tmp_path)
    assert len(journal.at_work) == parallel
    assert sum(part.last - part.first + 1 for part in journal.parts) == 1
    assert (journal.started, journal.is_first) == (1 + parallel, False)
    assert error["type"].endswith("ContextStoppedError")


@pytest.mark.rule("10.warm-up")
def test_10_a_run_without_an_executor_dies_before_any_envelope_is_at_work(spark, tmp_path, monkeypatch):
    at_work = []

    def gives_up(session):
        warm_up(session)
        context = session.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()  # the store learns of the end of a stage from an event
        stages = context.statusStore().activeStages()
        # The calls that the test before abandoned may be at work too.
        at_work.extend(str(stages.apply(index).description()) for index in range(stages.size()))
        raise RuntimeError("no executor being launched")

    monkeypatch.setattr("asya_spark.main.warm_up", gives_up)

    with pytest.raises(RuntimeError, match="no executor"):
        Run(spark, tmp_path, [{"n": 1}], job=f"{JOBS}.counts")

    journal, _ = Run.died(tmp_path)
    assert (journal.stage, journal.at_work, journal.started) == ("starting", (), 0)
    assert not any("wait for the first executor" in description for description in at_work)  # its task is done


@pytest.mark.rule("10.session.stopped")
def test_10_a_context_that_is_gone_is_noticed(spark):
    class Context:
        _jsc = None

    class Root:
        sparkContext = Context()  # noqa: N815 - PySpark's name

        def newSession(self):  # noqa: N802 - PySpark's name
            return self

    sessions = Sessions(Root())
    with pytest.raises(ContextStoppedError, match="lost executors"):
        sessions.close(sessions.open())


@pytest.mark.rule("10.jvm-errors")
def test_10_errors_of_the_jvm_are_those_of_their_causes(spark, tmp_path):
    folder = f"file://{tmp_path}"
    # Type, start of the message, what else its first line has, what else the message has.
    expected = {
        "missing-file": (
            "PATH_NOT_FOUND",
            f"Path does not exist: file:{tmp_path}/nowhere. (fails at session_jobs.py:",
            "",
            "",
        ),
        "broken-file": (
            "FAILED_READ_FILE.NO_HINT",
            f"Encountered error while reading file {folder}/broken.parquet.",
            f"(java.lang.RuntimeException: file:{tmp_path}/broken.parquet is not a Parquet file.",
            "",
        ),
        "broken-footer": (
            "FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER",
            f"Encountered error while reading file file:{tmp_path}/footer.parquet. Could not read footer.",
            "(java.lang.RuntimeException: ",
            "",
        ),
        "malformed-row": (
            "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
            "Malformed records are detected in record parsing: [null,3].",
            '(java.lang.NumberFormatException: For input string: "x"; ',
            f"\nwhile reading {folder}/rows.csv\n",
        ),
        "division": ("DIVIDE_BY_ZERO", "Division by zero. Use `try_divide`", "", '\n"__truediv__" was called from\n'),
        "cast": (
            "CAST_INVALID_INPUT",
            'The value \'abc\' of the type "STRING" cannot be cast to "INT"',
            "",
            "was called",
        ),
        "column": (
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "A column, variable, or function parameter with name `price`",
            "",
            "",
        ),
        "statement": ("PARSE_SYNTAX_ERROR", "Syntax error at or near 'selec'.", "", "\nselec 1\n"),
        "java": ("java.lang.ClassNotFoundException", "nowhere.Nothing (", "", ""),
    }
    kinds = [*expected, "worker", "worker-rdd"]

    done = Run(spark, tmp_path, [{"kind": kind, "folder": str(tmp_path)} for kind in kinds], job=f"{JOBS}.fails")

    errors = {kind: done.heads[index].error for index, kind in enumerate(kinds)}
    lines = Path(session_jobs.__file__).read_text().splitlines()
    for kind, (name, start, first, rest) in expected.items():
        error, line = errors[kind], errors[kind].message.partition("\n")[0]
        assert error.type == name
        assert line.startswith(start)
        assert first in line
        assert rest in error.message
        assert "SQLSTATE" not in line
        # The line is that of the call that failed: it follows the case of its kind.
        number = int(re.search(r"fails at session_jobs\.py:(\d+)\)$", line)[1])
        case = next(text for text in reversed(lines[: number - 1]) if "case" in text)
        assert case.strip() == f'case "{kind}":'
    for kind in ("worker", "worker-rdd"):
        assert (errors[kind].type, errors[kind].message) == (f"{JOBS}.BadRowError", "row 0 is bad\nand so is the next")
        assert {"ValueError", "Exception", "org.apache.spark.api.python.PythonException"} <= set(errors[kind].mro)
    # Policies match by what they matched before: Python's types, Spark's classes, and those of Java.
    assert {
        "pyspark.errors.exceptions.captured.AnalysisException",
        "pyspark.errors.exceptions.base.PySparkException",
        "org.apache.spark.sql.AnalysisException",
    } <= set(errors["missing-file"].mro)
    broken = {
        "py4j.protocol.Py4JJavaError",
        "FAILED_READ_FILE",
        "org.apache.spark.SparkException",
        "java.lang.RuntimeException",
    }
    assert broken <= set(errors["broken-file"].mro)
    malformed = {"FAILED_READ_FILE.NO_HINT", "MALFORMED_RECORD_IN_PARSING", "java.lang.NumberFormatException"}
    assert malformed <= set(errors["malformed-row"].mro)
    assert all(error.type not in error.mro for error in errors.values())
    # Each of these causes is a group of failures of its own.
    groups = {kind_of(error.message, error.type) for kind, error in errors.items() if kind != "worker-rdd"}
    assert len(groups) == len(kinds) - 1
