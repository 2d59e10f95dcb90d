"""`asya job` on resident runs: whose job run a batch is in, and the job run that goes on."""

from collections.abc import Callable, Iterator

import pytest
from typer.testing import Result

from asya.protocol.job_runs import Place
from tests.doubles.heavy import HeavyWorld, heavy_world
from tests.doubles.resident import LINGERING, arrive, commit, start_resident

Asya = Callable[..., Result]
RESIDENT, BATCH = "asya.flights.clean.0000000001", "asya.flights.clean.0000000002"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch, LINGERING) as world:
        start_resident(world)
        arrive(world, "d")
        world.dispatch()
        world.complete()
        yield world


@pytest.mark.slow
def test_a_batch_names_its_resident_run(world: HeavyWorld, asya: Asya) -> None:
    assert "1 running " in asya("list", "clean").stdout
    assert "RUNNING, batch 1 of run 1\n" in asya("show", BATCH).stdout
    commit(world, 2, 1, Place(1, 1))
    world.complete()
    output = asya("list", "clean").stdout
    assert "running" not in output
    assert "1 succeeded " in output
    assert "RUNNING, resident\n" in asya("show", RESIDENT).stdout


def test_the_files_of_a_batch_are_read_where_they_are(world: HeavyWorld, asya: Asya) -> None:
    commit(world, 2, 1, Place(1, 1))
    world.complete()
    output = asya("show", BATCH).stdout
    assert "every envelope has a result" in output
    assert "state      succeeded\n" in output
    assert "batch 1 of run 1\n" in output


@pytest.mark.slow
def test_an_idle_job_run_is_canceled(world: HeavyWorld, asya: Asya) -> None:
    assert asya("cancel", RESIDENT).exit_code == 0
    assert world.emr.canceled == ["run1"]


def test_a_batch_that_is_done_is_not_canceled(world: HeavyWorld, asya: Asya) -> None:
    commit(world, 2, 1, Place(1, 1))
    world.complete()
    assert "has ended already" in str(asya("cancel", BATCH).exception)
    assert world.emr.canceled == []
