"""Notes that synthesis prints: what a valid mesh file leaves open."""

from pathlib import Path

import pytest

from asya_infra import notes as notes_module
from asya_infra.mesh_file import load_mesh
from asya_infra.notes import notes
from asya_infra.product.interpreters import Interpreter


def notes_of(folder: Path, more: str, requirements: str = "") -> list[str]:
    (folder / "functions" / "handlers").mkdir(parents=True)
    (folder / "functions" / "handlers" / "shop.py").write_text("def one(payload): return payload\n")
    (folder / "functions" / "handlers" / "requirements.txt").write_text(requirements)
    (folder / "mesh.yaml").write_text(f"namespace: shop\nactors:\n  d: {{handler: shop.one}}\n{more}")
    return [note.replace(f"{folder}/", "") for note in notes(load_mesh(folder / "mesh.yaml"))]


@pytest.mark.rule("13.operators")
def test_without_operators_the_note_says_who_they_are_and_names_the_key(tmp_path: Path) -> None:
    [note] = notes_of(tmp_path, "")
    assert note.startswith("mesh.yaml: operators: names nobody, so every caller that signs its calls")
    assert "arn:aws:iam::" in note


@pytest.mark.rule("13.operators")
@pytest.mark.parametrize("operator", ["arn:aws:iam::123456789012:role/Admin", '"*"'])
def test_with_operators_there_is_no_note(tmp_path: Path, operator: str) -> None:
    assert notes_of(tmp_path, f"operators: [{operator}]\ngateway: {{starts: [d]}}\n") == []


@pytest.mark.rule("13.start.starts")
def test_without_starts_the_note_says_that_callers_may_start_anywhere(tmp_path: Path) -> None:
    [note] = notes_of(tmp_path, "operators: ['*']\n")
    assert note.startswith("mesh.yaml: gateway.starts: is left out, so every caller may start a task at any actor")


def test_a_foreign_gateway_that_is_no_api_address_gets_no_permission(tmp_path: Path) -> None:
    hosts = "[a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com, mesh.example.com]"
    [note] = notes_of(tmp_path, f"operators: ['*']\ngateway: {{starts: [d], foreign_gateways: {hosts}}}\n")
    assert "gateway.foreign_gateways: x-reports gets no permission to call mesh.example.com" in note


@pytest.mark.parametrize(
    ("requirements", "more", "is_noted"),
    [
        ("jmespath\n", "", True),
        ("jmespath==1.0.1 --hash=sha256:0\n", "", True),
        ("jmespath\n", "requirements_hashes: required\n", False),
        ("# nothing\n\n", "", False),
    ],
)
def test_packages_without_hashes(tmp_path: Path, requirements: str, more: str, is_noted: bool) -> None:
    found = notes_of(tmp_path, f"operators: ['*']\ngateway: {{starts: [d]}}\n{more}", requirements)
    assert len(found) == is_noted
    for note in found:
        assert note.startswith("mesh.yaml: requirements_hashes: is optional, so the package index decides")
        assert "functions/handlers/requirements.txt" in note


def test_a_job_that_stops_spark_is_told_that_this_does_nothing(tmp_path: Path) -> None:
    jobs = tmp_path / "spark_jobs"
    jobs.mkdir(parents=True)
    (jobs / "clean.py").write_text(
        "def clean(spark, payload):\n"
        "    timer.stop()\n"
        "    spark.streams.active[0].stop()\n"
        "    spark.sparkContext.stop()\n"
        "    SparkSession.builder.getOrCreate().stop()\n"
    )
    more = "  h: {spark: {job: clean.clean}}\noperators: ['*']\ngateway: {starts: [d]}\n"
    found = notes_of(tmp_path, more)
    assert [note.partition(" ")[0] for note in found] == ["spark_jobs/clean.py:4:", "spark_jobs/clean.py:5:"]
    assert "stop() does nothing in a job of actor 'h'" in found[0]


@pytest.mark.rule("6.code")
def test_a_note_names_each_file_that_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "functions" / "handlers").mkdir(parents=True)
    (tmp_path / "functions" / "handlers" / ".rates.json").touch()
    (tmp_path / "functions" / "handlers" / ".gitignore").touch()
    (tmp_path / "functions" / "handlers" / "shop.py").write_text("def one(payload): return payload\n")
    (tmp_path / "mesh.yaml").write_text(
        "namespace: shop\noperators: ['*']\ngateway: {starts: [d]}\nactors:\n  d: {handler: shop.one}\n"
    )
    assert [note.removeprefix(f"{tmp_path}/") for note in notes(load_mesh(tmp_path / "mesh.yaml"))] == [
        "functions/handlers/.rates.json: is not deployed: its name begins with a dot; give it a name without one, or a link to it"
    ]


def test_what_another_python_stands_in_for_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stand_in(wanted: str) -> Interpreter:
        return Interpreter(Path("python"), "3.11.7", wanted, "the network is down")

    monkeypatch.setattr(notes_module, "interpreter_for", stand_in)
    [note] = notes_of(tmp_path, "operators: ['*']\ngateway: {starts: [d]}\n")
    assert note.startswith(
        "mesh.yaml: Python 3.13, which functions have, is not on this machine, so Python 3.11.7 stands in: "
    )
    assert note.endswith("Install it with `uv python install 3.13` (the network is down)")


def test_a_misspelled_setting_of_spark_is_noted(tmp_path: Path) -> None:
    (tmp_path / "spark_jobs").mkdir()
    (tmp_path / "spark_jobs" / "lake.py").write_text("def load(spark, payload): return payload\n")
    conf = "{spark.sql.ansi.enable: false, spark.sql.ansi.enabled: false, spark.own: 1}"
    found = notes_of(tmp_path, f"  load: {{spark: {{job: lake.load, conf: {conf}}}}}\n")
    assert [note for note in found if ".spark.conf" in note] == [
        "mesh.yaml: actors.load.spark.conf: Spark has no setting 'spark.sql.ansi.enable', and would ignore it; did you mean "
        "'spark.sql.ansi.enabled'?"
    ]


@pytest.mark.parametrize(
    ("stream", "method"),
    [
        ("stream.start().awaitTermination()", "awaitTermination"),
        ("spark.streams.awaitAnyTermination()", "awaitAnyTermination"),
        ("stream.trigger(processingTime='1 minute').start().awaitTermination()", "awaitTermination"),
        ("stream.trigger(availableNow=True).start().awaitTermination()", None),
        ("stream.trigger(once=True).start().awaitTermination()", None),
        ("stream.start().awaitTermination(60)", None),
        ("stream.start().awaitTermination(timeout=60)", None),
    ],
)
def test_a_job_that_waits_for_a_stream_without_an_end_is_noted(tmp_path: Path, stream: str, method: str | None) -> None:
    (tmp_path / "spark_jobs").mkdir()
    (tmp_path / "spark_jobs" / "lake.py").write_text(f"def load(spark, payload):\n    stream = spark\n    {stream}\n")
    found = notes_of(tmp_path, "  load: {spark: {job: lake.load}}\n")
    assert [note.partition(" in a job")[0] for note in found if "without an end" in note] == (
        [f"spark_jobs/lake.py:3: {method}()"] if method else []
    )


@pytest.mark.parametrize(
    ("actor", "tools", "note"),
    [
        (
            "spark: {job: lake.load}",
            "{load: {timeout: 10m}}",
            "actors.load.timeout: 15m is more than the deadline of the tool 'load', 10m, which ends the task before; shorten it, "
            "or raise tools.load.timeout",
        ),
        (
            "handler: shop.one, timeout: 80s",
            "{short: {route: [d, load], timeout: 20s}, longer: {route: [load], timeout: 1m}, other: {route: [d], timeout: 5m}}",
            "actors.load.timeout: 80s is more than the deadline of the tool 'longer', 1m, which ends the task before; shorten it, "
            "or raise tools.longer.timeout",
        ),
        ("spark: {job: lake.load}", "{load: {}}", None),
        ("spark: {job: lake.load}", "{load: {timeout: 10m}, night: {route: [load], timeout: 1h}}", None),
        ("handler: shop.one", "{load: {timeout: 5s}}", None),
        ("handler: shop.one, timeout: 80s", "{other: {route: [d], timeout: 5s}}", None),
    ],
)
def test_an_actor_that_may_work_beyond_the_deadline_is_noted(
    tmp_path: Path, actor: str, tools: str, note: str | None
) -> None:
    (tmp_path / "spark_jobs").mkdir()
    (tmp_path / "spark_jobs" / "lake.py").write_text("def load(spark, payload): return payload\n")
    found = notes_of(tmp_path, f"  load: {{{actor}}}\ntools: {tools}\n")
    assert [each for each in found if ".timeout: " in each] == ([f"mesh.yaml: {note}"] if note else [])
