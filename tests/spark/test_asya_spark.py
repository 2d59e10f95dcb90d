"""The job side of a run: from the manifest to the results and one commit (`protocol §10`)."""

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from asya.protocol.job_runs import Commit, Journal, Manifest, Member, ResultFrame, ResultHead, manifest_key
from asya_spark import context, data
from asya_spark.heartbeat import spark_progress
from asya_spark.main import run
from asya_spark.manifest import ManifestError
from asya_spark.secrets import NO_SECRETS, Secrets
from asya_spark.time_limit import run_within
from tests.doubles.secret_stores import SecretStores
from tests.spark.sample_jobs import FOREVER

pytestmark = pytest.mark.spark

JOBS = "tests.spark.sample_jobs"


def member(index, payload, **changes):
    envelope = {
        "id": f"e{index}",
        "route": {"prev": ["a"], "curr": "heavy", "next": ["b"]},
        "headers": {"colour": "red"},
        "status": {"phase": "processing", "attempt": 2},
        "payload": payload,
    }
    inline = {"envelope": msgspec.Raw(json.dumps(envelope).encode())}
    return Member(
        **{"id": f"e{index}", "position": 1, "attempt": 2, "admitted_at": "2026-01-01T00:00:00Z", **inline, **changes}
    )


class Run:
    """A run in a folder, and its results."""

    def __init__(self, spark, folder, payloads, job="by_payload", secrets=NO_SECRETS, **changes):
        members = tuple(p if isinstance(p, Member) else member(i, p) for i, p in enumerate(payloads))
        # Long enough for the slowest machine; only the tests of time limits use less.
        settings = {"shape": "payload", "timeout": 600.0, "time_limit": 15, "client_token": "t", **changes}
        manifest = Manifest(
            run_id="asya.ns.heavy.0000000007",
            namespace="ns",
            actor="heavy",
            number=7,
            formed_at="2026-01-01T00:00:00Z",
            job=job if "." in job else f"{JOBS}.{job}",
            members=members,
            **settings,
        )
        path = folder / manifest_key("heavy", 7)
        path.parent.mkdir(parents=True)
        path.write_bytes(msgspec.json.encode(manifest))
        self.attempt = run(spark, f"file://{path}", secrets=secrets).removeprefix("file://")
        with open(f"{self.attempt}commit.json", "rb") as file:
            self.commit = msgspec.json.decode(file.read(), type=Commit)
        self.heads, self.frames = {}, {}
        for part in self.commit.parts:
            with open(f"{self.attempt}{part.file}", "rb") as file:
                content = file.read()
            lines = content.splitlines()
            assert (len(lines), len(content)) == (part.lines, part.size)
            self._take(lines, part)
        assert list(self.heads) == sorted(self.heads)

    def _take(self, lines, part):
        while lines:
            head = msgspec.json.decode(lines.pop(0), type=ResultHead)
            assert part.first <= head.index <= part.last
            self.heads[head.index] = head
            self.frames[head.index] = [msgspec.json.decode(lines.pop(0), type=ResultFrame) for _ in range(head.frames)]

    def partials(self):
        """The partials: (member, sequence, message)."""
        lines = [
            line for path in sorted(Path(self.attempt).glob("fly-*.jsonl")) for line in path.read_text().splitlines()
        ]
        return [(partial["index"], partial["sequence"], partial["data"]) for partial in map(json.loads, lines)]

    def payloads(self, index):
        return [json.loads(bytes(frame.payload)) for frame in self.frames[index]]


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


@pytest.mark.rule("10.timeout.envelope")
@pytest.mark.parametrize("what", ["sleep", "spin", "long-spark"])
def test_a_time_limit_ends_one_envelope_and_the_next_one_is_well(spark, tmp_path, monkeypatch, what):
    """The first call exceeds both limits; if it did not end, or kept Spark busy, the second would not end."""
    monkeypatch.setattr("asya_spark.time_limit.GRACE_SECONDS", 0.5)
    limits = []

    def first_is_short(seconds, work, spark_context, group):
        limits.append(seconds)
        return run_within(2.0 if len(limits) == 1 else seconds, work, spark_context, group)

    monkeypatch.setattr("asya_spark.payload_job.run_within", first_is_short)

    done = Run(spark, tmp_path, [{"do": what, "n": FOREVER}, {"do": "count", "n": 3}])

    assert (done.heads[0].end, done.heads[0].limit, done.heads[0].by_deadline) == ("timed_out", 600.0, False)
    assert done.payloads(1) == [{"rows": 3}]


@pytest.mark.rule("10.timeout.envelope")
def test_a_deadline_shortens_the_limit_and_a_passed_one_starts_nothing(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.time_limit.GRACE_SECONDS", 0.5)
    now = datetime.now(UTC)
    soon, past = ((now + timedelta(seconds=s)).isoformat().replace("+00:00", "Z") for s in (2, -5))
    payload = {"do": "sleep", "n": FOREVER}

    done = Run(spark, tmp_path, [member(0, payload, deadline_at=soon), member(1, payload, deadline_at=past)])

    assert (done.heads[0].end, done.heads[0].by_deadline) == ("timed_out", True)
    assert done.heads[0].limit < 2
    assert (done.heads[1].end, done.heads[1].by_deadline, done.heads[1].limit) == ("timed_out", True, 0.0)


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

    slots = []
    for slot in range(2):
        with open(f"{done.attempt}journal-{slot}.json", "rb") as file:
            slots.append(msgspec.json.decode(file.read(), type=Journal))
    # first the start, then the three members, then no member
    assert {(journal.sequence, journal.at_work) for journal in slots} == {(4, 2), (5, None)}
    assert {journal.stage for journal in slots} == {"working"}


def test_parts_hold_whole_envelopes_in_order(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.results.PART_BYTES", 300)

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


@pytest.mark.rule("10.dataframe")
def test_a_dataframe_of_envelopes(spark, tmp_path):
    done = Run(spark, tmp_path, [{"n": n} for n in range(1, 6)], job="double", shape="dataframe")

    assert done.payloads(0) == [{"doubled": 2, "ordinal": 0, "gap": None}]
    assert done.frames[1][0].next == ("elsewhere",)
    assert [payload["ordinal"] for payload in done.payloads(2)] == [0, 1]
    assert (done.heads[3].end, done.payloads(3)) == ("done", [])
    assert (done.heads[4].end, done.heads[4].error.message) == ("failed", "five is too much")


@pytest.mark.rule("10.dataframe")
def test_a_dataframe_with_a_declared_schema(spark, tmp_path):
    done = Run(spark, tmp_path, [{"n": 1}, {"n": 2}], job="typed", shape="dataframe", payload_schema="n INT")

    assert [done.payloads(0), done.payloads(1)] == [[{"n": 2}], [{"n": 3}]]


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        ("unknown_id", "'unknown', which is no envelope of this run"),
        ("broken", "no_such_column"),
        ("returns_int", "not int"),
    ],
)
def test_a_dataframe_job_that_fails_for_all(spark, tmp_path, job, problem):
    done = Run(spark, tmp_path, [{"n": 1}, {"n": 2}], job=job, shape="dataframe")

    assert [done.heads[index].end for index in range(2)] == ["failed"] * 2
    assert problem in done.heads[0].error.message
    assert done.commit.error is None


@pytest.mark.rule("10.dataframe.one-bad")
def test_10_one_bad_envelope_of_a_dataframe_fails_alone_with_its_own_error(spark, tmp_path):
    payloads = [{"n": n} for n in range(9)] + [{"n": "no number"}] + [{"n": n} for n in range(6)]

    done = Run(spark, tmp_path, payloads, job="strict", shape="dataframe", timeout=600.0, time_limit=15)

    assert [index for index in range(16) if done.heads[index].end != "done"] == [9]
    assert "no number" in done.heads[9].error.message
    assert [done.payloads(index)[0]["n"] for index in (0, 8, 15)] == [1, 9, 6]


@pytest.mark.rule("10.dataframe.one-bad")
def test_10_a_dataframe_job_that_always_fails_comes_to_an_end(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.dataframe_job.FAILED_CALL_LIMIT", 5)
    calls = tmp_path / "calls"

    done = Run(spark, tmp_path, [{"calls": str(calls)}] * 40, job="always_fails", shape="dataframe", timeout=600.0)

    assert {head.end for head in done.heads.values()} == {"failed"}
    assert len(done.heads) == 40
    assert len(calls.read_text()) <= 10


@pytest.mark.rule("10.timeout.rest")
def test_10_members_without_time_are_left_to_another_run(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.time_limit.GRACE_SECONDS", 0.5)
    spark.range(3).count()

    done = Run(spark, tmp_path, [{"do": "none"}, {"do": "sleep", "n": FOREVER}, {"do": "none"}], time_limit=0.05)

    assert (done.commit.unreached, list(done.heads)) == (1, [0])
    assert done.commit.error is None


@pytest.mark.rule("10.timeout.rest")
def test_10_the_first_one_has_all_the_time_of_its_run(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.time_limit.GRACE_SECONDS", 0.5)

    done = Run(spark, tmp_path, [{"do": "sleep", "n": FOREVER}, {"do": "none"}], time_limit=0.05)

    assert (done.heads[0].end, done.commit.unreached) == ("timed_out", 1)


def test_10_a_dataframe_that_takes_too_long_times_out_for_all_its_envelopes(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("asya_spark.time_limit.GRACE_SECONDS", 0.5)
    due = (datetime.now(UTC) + timedelta(minutes=5)).isoformat().replace("+00:00", "Z")

    done = Run(spark, tmp_path, [member(0, {"n": 1}), member(1, {"n": 2}, deadline_at=due)], job="sleeps",
               shape="dataframe", timeout=2.0)  # fmt: skip

    assert [(head.end, head.limit, head.by_deadline) for head in done.heads.values()] == [("timed_out", 2.0, False)] * 2


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
    assert (last["at_work"], last["done"]) == (1, 1)
    (stage,) = last["stages"]
    assert stage["tasks"] == 4
    assert {"done", "rows_read", "rows_written", "name", "stage"} <= stage.keys()


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


VALUE = "sk-4f9c81d2e6"


@pytest.fixture
def secrets(monkeypatch):
    """The secret SHOP_KEY, which is no variable after the test."""
    monkeypatch.setenv("SHOP_KEY", "")
    monkeypatch.delenv("SHOP_KEY")
    return Secrets({"SHOP_KEY": "shop/key"}, lambda _: SecretStores(secrets={"shop/key": VALUE}))


def texts(folder):
    """The text of all files that the run wrote."""
    return "".join(path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file())


@pytest.mark.rule("10.secrets")
def test_10_the_driver_has_its_secrets_and_nothing_else_has(spark, tmp_path, secrets, capfd):
    """Neither the executors nor Spark's settings; errors have the name."""
    payloads = [{"do": "secret-length"}, {"do": "secret-of-executor"}, {"do": "raise-secret"}]

    done = Run(spark, tmp_path, payloads, job="by_payload", secrets=secrets)

    assert (done.payloads(0), done.payloads(1)) == ([len(VALUE)], ["unset"])
    assert done.heads[2].error.message == "401: [secret SHOP_KEY]"
    assert "ValueError: 401: [secret SHOP_KEY]" in done.heads[2].error.traceback
    settings = spark.sparkContext.getConf().getAll()
    assert VALUE not in texts(tmp_path) + str(settings) + "".join(capfd.readouterr())


@pytest.mark.rule("10.secrets.redacted")
def test_10_an_import_and_a_dataframe_job_leave_no_value(spark, tmp_path, secrets, capfd, monkeypatch):
    code = tmp_path / "code"
    code.mkdir()
    (code / "fails_at_import.py").write_text("import os\nraise ValueError('at import: ' + os.environ['SHOP_KEY'])\n")
    monkeypatch.syspath_prepend(code)
    Run(spark, tmp_path / "import", [{}], job="fails_at_import.run", secrets=secrets)
    frame = Run(spark, tmp_path / "frame", [{}, {}], job="raise_secret_frame", shape="dataframe", secrets=secrets)

    assert [head.error.message for head in frame.heads.values()] == ["401: [secret SHOP_KEY]"] * 2
    written = texts(tmp_path) + "".join(capfd.readouterr())
    assert "at import: [secret SHOP_KEY]" in written
    assert VALUE not in written


@pytest.mark.rule("10.secrets.unreadable")
def test_10_without_its_secret_the_run_ends_before_the_job_is_loaded(spark, tmp_path):
    secrets = Secrets({"SHOP_KEY": "shop/missing"}, lambda _: SecretStores())

    done = Run(spark, tmp_path, [{}, {}], job="no_such_module.run", secrets=secrets)

    assert done.heads == {}
    assert done.commit.error.type == "asya_spark.secrets.SecretError"
    assert done.commit.error.message.startswith("the secret 'shop/missing' for the variable SHOP_KEY cannot be read (")
    assert done.commit.unreached is None


def test_spark_lists_its_executors_with_the_driver(spark, monkeypatch):
    """A local driver has none; on a cluster the same list counts."""
    assert spark_progress(spark.sparkContext)["executors"] is None
    monkeypatch.setattr(spark.sparkContext, "master", "yarn")
    assert spark_progress(spark.sparkContext)["executors"] == 0
