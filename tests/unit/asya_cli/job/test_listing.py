"""`asya job list`: the open runs first, pages, costs, and why envelopes wait."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from typer.testing import Result

from asya_cli.job.listing import age
from tests.doubles.dispatching import start_run
from tests.doubles.heavy import HeavyWorld, done_result
from tests.unit.asya_cli.job.conftest import Operator, end_run, read_lines

Asya = Callable[..., Result]


def end_runs(world: HeavyWorld, count: int) -> None:
    for number in range(1, count + 1):
        start_run(world, f"e{number}")
        world.write_results(number, [done_result(0, 1)])
        end_run(world, number)


@pytest.mark.slow
def test_open_runs_come_first_then_the_newest(world: HeavyWorld, asya: Asya) -> None:
    end_runs(world, 2)
    start_run(world, "open", "other")
    lines = read_lines(asya("list", "--json"))
    assert [(line["run_id"][-1], line["is_open"]) for line in lines] == [("3", True), ("2", False), ("1", False)]
    assert (lines[0]["state"], lines[0]["envelopes"], lines[0]["dollars"]) == ("submitted", 2, None)
    assert (lines[0]["emr_state"], lines[0]["outcomes"]) == ("SUBMITTED", None)
    assert (lines[1]["state"], lines[1]["emr_state"], lines[1]["outcomes"]) == (
        "succeeded",
        "SUCCESS",
        {"succeeded": 1},
    )
    assert lines[1]["dollars"] == pytest.approx(0.5 * 0.052624 + 2 * 0.0057785)


@pytest.mark.slow
def test_pages_of_an_actor(world: HeavyWorld, asya: Asya) -> None:
    end_runs(world, 3)
    first = asya("list", "clean", "-n", "2")
    assert "older runs: asya job list clean --before 2" in first.stderr
    assert "0000000003" in first.stdout
    assert "0000000001" not in first.stdout
    rest = read_lines(asya("list", "clean", "-n", "2", "--before", "2", "--json"))
    assert [line["run_id"][-1] for line in rest] == ["1"]


def test_a_page_needs_an_actor(asya: Asya) -> None:
    result = asya("list", "--before", "2")
    assert result.exit_code == 1
    assert "--before needs an actor" in str(result.exception)


@pytest.mark.slow
def test_the_output_names_the_prices(world: HeavyWorld, operator: Operator, asya: Asya) -> None:
    end_runs(world, 1)
    assert "$0.052624 per vCPU-hour, $0.0057785 per GB-hour (list price of X86_64 in us-east-1)" in asya("list").stderr
    operator.architecture = "ARM64"
    assert "$0.042094 per vCPU-hour" in asya("list").stderr
    (own,) = read_lines(asya("list", "--json", "--vcpu-price", "1", "--memory-price", "0"))
    assert own["dollars"] == 0.5


def test_a_drained_actor_explains_its_pending_envelopes(world: HeavyWorld, asya: Asya) -> None:
    assert asya("drain", "clean", "--reason", "compaction").exit_code == 0
    start_run(world, "a")
    told = asya("list").stderr
    assert "clean: drained by arn:aws:iam::123456789012:user/ann since 20" in told
    assert "(compaction); 1 envelope pending" in told


def test_envelopes_that_wait_for_their_first_run_are_named(world: HeavyWorld, asya: Asya) -> None:
    world.send("a")
    world.enqueue()
    assert "clean: 1 envelope pending" in asya("list").stderr


def test_a_mesh_without_runs(asya: Asya) -> None:
    assert "no job runs" in asya("list").stderr


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59, "59s"), (65, "1m 5s"), (3_600, "1h 0m"), (200_000, "2d 7h")]
)
def test_ages(seconds: int, text: str) -> None:
    formed = datetime.fromtimestamp(1_700_000_000, UTC)
    assert age("2023-11-14T22:13:20Z", datetime.fromtimestamp(formed.timestamp() + seconds, UTC)) == text
