"""`asya job show`: a run with its envelopes, its verdict and its cost."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import Result

from asya.protocol.job_runs import attempts_prefix
from asya.protocol.mesh_table import JobSize, SparkJob
from tests.doubles.dispatching import start_run
from tests.doubles.heavy import BUCKET, HeavyWorld, done_result, failed_result
from tests.unit.asya_cli.job.conftest import end_run

Asya = Callable[..., Result]
RUN = "asya.flights.clean.0000000001"


def shown(asya: Asya, *more: str) -> dict[str, str]:
    """The facts of the run, by name."""
    result = asya("show", RUN, *more)
    assert result.exit_code == 0, result.output
    pairs = (line.split(maxsplit=1) for line in result.stdout.split("\n\n")[0].splitlines())
    return {pair[0]: pair[1] for pair in pairs}


def report(asya: Asya) -> dict[str, Any]:
    result = asya("show", RUN, "--json")
    assert result.exit_code == 0, result.output
    content: dict[str, Any] = json.loads(result.stdout)
    return content


def outcomes(asya: Asya) -> dict[str, str]:
    return {member["id"]: member["outcome"] for member in report(asya)["members"]}


@pytest.mark.slow
def test_outcome_and_error_are_readable_at_80_columns(
    world: HeavyWorld, asya: Asya, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "e0e80374-0df3-8c68-928b-705aa090d8ae"
    start_run(world, name)
    world.write_results(1, [failed_result(0)])
    end_run(world, 1)

    def table(columns: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        return asya("show", RUN).stdout.split("\n\n")[1].splitlines()

    head, row = table(80)
    assert (head.split()[0], row.split()[0], row.split()[2]) == ("envelope", name, "failed")
    assert row.rstrip().endswith("ValueError: bad")
    assert len(row.rstrip()) <= 80
    assert "GB-hours" not in head
    assert "GB-hours" in table(160)[0]


@pytest.mark.slow
def test_envelopes_share_the_cost_by_the_duration_of_their_calls(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a", "b", "c")
    slow = done_result(0, 1)
    slow[0]["duration_ms"] = 30.0
    failed = failed_result(2)
    failed[0]["duration_ms"] = 5.0
    world.write_results(1, [slow, done_result(1, 1), failed])
    end_run(world, 1)

    content = report(asya)

    assert outcomes(asya) == {"a": "succeeded", "b": "succeeded", "c": "failed"}
    assert content["shared"] == "by duration"
    assert [member["usage"]["vcpu_hours"] for member in content["members"]] == [0.375, 0.0625, 0.0625]
    assert content["members"][2]["error"] == "ValueError: bad"
    assert sum(member["dollars"] for member in content["members"]) == pytest.approx(content["dollars"])
    facts = shown(asya)
    assert (facts["state"], facts["EMR"]) == ("partly retried", "state  SUCCESS")
    assert facts["results"] == "2 succeeded, 1 retried"
    assert facts["verdict"] == "every envelope has a result (2 succeeded, 1 retried)"
    assert facts["billed"] == "0.5 vCPU-hours, 2 GB-hours of memory"
    assert facts["cost"] == "$0.0379"
    assert facts["shared"] == "by duration, among 3 envelopes"
    assert (
        facts["log"] == f"s3://{BUCKET}/runs/clean/0000000001/logs/applications/00app/jobs/run1/SPARK_DRIVER/stderr.gz"
    )
    assert facts["dashboard"] == "https://dashboard"


@pytest.mark.slow
def test_without_all_durations_the_cost_is_shared_equally(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a", "b")
    world.write_results(1, [done_result(0, 1)], end="journal")
    end_run(world, 1, "FAILED", details="ExitCode: 137")

    content = report(asya)

    assert content["shared"] == "equally"
    assert [member["usage"]["vcpu_hours"] for member in content["members"]] == [0.25, 0.25]
    assert outcomes(asya) == {"a": "succeeded", "b": "suspect, runs again alone"}
    assert (content["state"], content["outcomes"]) == ("partly again", {"succeeded": 1, "again": 1})
    assert "suspected: 1 envelope at work" in content["verdict"]
    assert content["details"].startswith("ExitCode: 137 (137 is out of memory as a rule")


@pytest.mark.slow
def test_the_convicted_envelope_is_named(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a", "b")
    world.write_results(1, [], end="journal")
    end_run(world, 1, "FAILED")
    assert outcomes(asya) == {"a": "charged", "b": "runs again"}
    assert report(asya)["verdict"] == (
        "a was the first and only envelope at work, so it is charged; charged: 1, run again uncharged: 1"
        " (1 retried, 1 again)"
    )


@pytest.mark.rule("10.size.alone", "10.size.larger", "13.operations.runs.one")
def test_the_size_of_a_run_and_where_its_envelopes_go(world: HeavyWorld, asya: Asya) -> None:
    job = SparkJob(job="flights.clean", sizes=(JobSize(name="small"), JobSize(name="large")))
    actors = {**world.table.actors, "clean": replace(world.table.actors["clean"], spark=job)}
    world.table = replace(world.table, actors=actors)
    start_run(world, "a", "b", "c")
    memory = failed_result(0, kind="MemoryError", message="")
    world.write_results(1, [memory], end="journal")
    end_run(world, 1, "FAILED", details="ExitCode: 137")

    assert outcomes(asya) == {
        "a": "out of memory, runs again in size large",
        "b": "out of memory, runs again in size large",
        "c": "runs again",
    }
    facts = shown(asya)
    assert (facts["size"], facts["state"], facts["results"]) == ("small", "runs again", "3 again")
    assert facts["verdict"] == (
        "the run died of memory in size small, so 1 envelope at work to run again in size large; "
        "charged: 0, run again uncharged: 2 (3 again)"
    )


@pytest.mark.rule("10.work", "13.operations.runs.one")
def test_shuffle_spill_and_skew_of_a_run(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a", "b", "c")
    results = [done_result(index, index) for index in range(3)]
    skew = {"stage": 4, "name": "x" * 100, "tasks": 200, "median_ms": 310.0, "longest_ms": 9200.0}
    results[0][0]["work"] = {
        "stages": 2,
        "tasks": 201,
        "shuffle_read": 3 * 2**30,
        "skew": {**skew, "longest_ms": 4000.0},
    }
    results[1][0]["work"] = {"stages": 1, "spilled_memory": 2048, "spilled_disk": 640, "skew": skew}
    world.write_results(1, results)
    end_run(world, 1)

    content = report(asya)
    assert [member["work"] is None for member in content["members"]] == [False, False, True]
    facts = shown(asya)
    assert facts["shuffle"] == "3.0 GiB read, 0 B written"
    assert facts["spilled"] == "2.0 KiB of memory, 640 B on disk"
    assert facts["skew"] == f"stage 4 {'x' * 80}: the longest of 200 tasks took 9.2 s, the median 0.3 s"


def test_the_error_of_the_whole_job(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a")
    error = {"type": "ImportError", "message": "no module", "mro": [], "traceback": ""}
    world.write_results(1, [], error=error)
    end_run(world, 1)
    assert report(asya)["verdict"].startswith("the job failed with ImportError: no module; charged: 1")


@pytest.mark.slow
def test_a_running_run_shows_its_stages(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a", "b")
    world.write_results(1, [done_result(0, 1)], end="journal")
    beat = {
        "at": "2026-01-01T00:08:03Z", "beat": 1, "at_work": [1], "done": 1, "executors": 2,
        "stages": [{
            "stage": 3, "name": "count at x.py:1", "tasks": 8, "done": 5, "rows_read": 10, "rows_written": 2,
            "progress_at": "2026-01-01T00:00:03Z",
        }],
    }  # fmt: skip
    key = f"{attempts_prefix('clean', 1)}a1/heartbeat-0.json"
    world.s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(beat).encode())

    facts = shown(asya)

    assert outcomes(asya) == {"a": "succeeded", "b": "at work"}
    assert facts["heartbeat"] == "2026-01-01T00:08:03Z, 1 envelope done, 2 executors so far"
    assert facts["stage"] == "3 count at x.py:1: 5 of 8 tasks, 10 rows read, 2 written, no task has ended for 8m0s"
    assert facts["attempts"] == "a1"
    assert "cost" not in facts


def test_a_run_that_has_not_started(world: HeavyWorld, asya: Asya) -> None:
    world.emr.refusals = ["ServiceQuotaExceededException"]
    start_run(world, "a")
    facts = shown(asya)
    assert (facts["job"], facts["state"]) == ("run    not started", "formed")
    assert "log" not in facts
    assert outcomes(asya) == {"a": "waits"}


def test_a_run_whose_files_have_expired(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, 1)])
    end_run(world, 1)
    for item in world.s3.list_objects_v2(Bucket=BUCKET, Prefix="runs/")["Contents"]:
        world.s3.delete_object(Bucket=BUCKET, Key=item["Key"])
    assert shown(asya)["problem"].startswith("the files of the run are gone")


def test_a_limit_of_envelopes(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a", "b", "c")
    result = asya("show", RUN, "-n", "1")
    assert "2 more; -n 3 shows all" in result.stderr


@pytest.mark.parametrize(
    ("run_id", "problem"),
    [
        ("00abc", "is not a job run of the mesh 'flights'"),
        (RUN, "there is no job run"),
        ("asya.other.clean.0000000007", "is not a job run of the mesh 'flights'"),
    ],
)
def test_an_unknown_run_is_an_error(asya: Asya, run_id: str, problem: str) -> None:
    result = asya("show", run_id)
    assert result.exit_code == 1
    assert problem in str(result.exception)
