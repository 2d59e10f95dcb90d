"""The places of runs in resident ones: each run and each batch once."""

from collections.abc import Iterator

import pytest

from asya.heavy.aws.resident_runs import ResidentRun, Residents
from asya.protocol.job_runs import Place
from tests.doubles.heavy import HeavyWorld, heavy_world

RESIDENT = ResidentRun("clean", 1, "run1", "code")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as world:
        world.services.residents.add(RESIDENT, now=world.services.now())
        yield world


def form(world: HeavyWorld, number: int) -> None:
    """Record a formed run."""
    key = {"pk": {"S": "RUN#clean"}, "sk": {"S": f"{number:010d}"}}
    world.dynamodb.put_item(TableName="asya-flights-pending", Item={**key, "state": {"S": "formed"}})


@pytest.fixture
def residents(world: HeavyWorld) -> Residents:
    for number in (2, 3):
        form(world, number)
    return world.services.residents


@pytest.mark.rule("10.resident.place")
def test_10_a_batch_is_one_run(residents: Residents) -> None:
    assert residents.place("clean", 2, RESIDENT.next)
    assert not residents.place("clean", 3, RESIDENT.next)
    assert residents.all("clean") == [ResidentRun("clean", 1, "run1", "code", batch=1)]


@pytest.mark.rule("10.resident.place")
@pytest.mark.parametrize("first", [None, Place(1, 1)])
@pytest.mark.parametrize("second", [None, Place(1, 1), Place(1, 2)])
def test_10_a_run_is_placed_once(residents: Residents, first: Place | None, second: Place | None) -> None:
    assert residents.place("clean", 2, first)
    assert not residents.place("clean", 2, second)


@pytest.mark.rule("10.resident.place")
def test_10_a_run_is_placed_anew_after_its_batch_was_closed(residents: Residents) -> None:
    residents.place("clean", 2, RESIDENT.next)
    residents.displace("clean", 2, RESIDENT.next)
    assert residents.all("clean") == [ResidentRun("clean", 1, "run1", "code", batch=1, is_closed=True)]
    assert not residents.place("clean", 2, RESIDENT.next)
    assert residents.place("clean", 2, None)
    residents.displace("clean", 2, RESIDENT.next)  # a slower dispatcher
    assert not residents.place("clean", 2, None)


def test_a_resident_run_is_added_once(residents: Residents, world: HeavyWorld) -> None:
    residents.place("clean", 2, RESIDENT.next)
    residents.add(RESIDENT, now=world.services.now())
    assert residents.all("clean")[0].batch == 1
