"""`asya job drain` and `asya job undrain`."""

from collections.abc import Callable

import pytest
from typer.testing import Result

from tests.doubles.dispatching import start_run
from tests.doubles.heavy import HeavyWorld
from tests.unit.asya_cli.job.conftest import ARN, Operator

Asya = Callable[..., Result]


@pytest.mark.rule("10.drain")
@pytest.mark.rule("10.drain.end")
@pytest.mark.slow
def test_envelopes_wait_until_the_end_of_the_drain(world: HeavyWorld, operator: Operator, asya: Asya) -> None:
    drained = asya("drain", "clean", "--reason", "compaction")
    assert drained.exit_code == 0, drained.output
    assert f"clean: drained by {ARN} since" in drained.stdout
    start_run(world, "a")
    assert world.emr.runs == {}

    ended = asya("undrain", "clean")

    assert ended.exit_code == 0, ended.output
    assert "the runs of 1 pending envelope start now" in ended.stdout
    assert operator.invoked == ["asya-flights-x-reconcile"]
    world.dispatch()
    assert len(world.emr.runs) == 1


def test_open_runs_are_counted(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a")
    assert "1 run still open" in asya("drain", "clean").stderr


@pytest.mark.slow
def test_an_actor_that_never_had_an_envelope_may_be_a_light_one(world: HeavyWorld, asya: Asya) -> None:
    start_run(world, "a")
    assert "if it is a light actor, the drain does nothing" in asya("drain", "publish").stderr
    assert "light actor" not in asya("drain", "clean").stderr


def test_an_unknown_actor(asya: Asya) -> None:
    assert "has no actor 'cleam'" in str(asya("drain", "cleam").exception)


def test_the_next_sweep_starts_the_runs_if_the_reconciler_cannot_be_called(
    world: HeavyWorld, operator: Operator, asya: Asya, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import EndpointConnectionError

    def fail(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="https://lambda")

    monkeypatch.setattr(operator, "invoke", fail)
    asya("drain", "clean")
    ended = asya("undrain", "clean")
    assert ended.exit_code == 0
    assert "start within 5 minutes" in ended.stdout
    assert world.services.drains.get("clean") is None


def test_an_actor_that_is_not_drained(asya: Asya) -> None:
    assert "clean is not drained" in asya("undrain", "clean").stderr
