"""`asya job cancel`: the job run ends, its envelopes run again."""

from collections.abc import Callable

import pytest
from typer.testing import Result

from tests.doubles.dispatching import start_run
from tests.doubles.heavy import HeavyWorld, done_result
from tests.unit.asya_cli.job.conftest import end_run

Asya = Callable[..., Result]
RUN = "asya.flights.clean.0000000001"


def test_a_running_run_is_canceled(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a")
    world.set_state("run1", "RUNNING")
    world.complete()
    result = asya("cancel", RUN)
    assert result.exit_code == 0, result.output
    assert world.emr.canceled == ["run1"]
    assert "run again at once, because clean is not drained" in result.stderr


@pytest.mark.slow
def test_a_run_of_a_drained_actor_says_no_warning(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a")
    world.set_state("run1", "RUNNING")
    world.complete()
    asya("drain", "clean")
    assert "run again" not in asya("cancel", RUN).stderr


def test_a_run_that_has_ended(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, 1)])
    end_run(world, 1)
    result = asya("cancel", RUN)
    assert "has ended already: SUCCESS" in str(result.exception)
    assert world.emr.canceled == []


def test_a_run_that_has_not_started(world: HeavyWorld, asya: Asya) -> None:
    world.emr.refusals = ["ServiceQuotaExceededException"]
    start_run(world, "a")
    assert "there is no job run to cancel" in str(asya("cancel", RUN).exception)
