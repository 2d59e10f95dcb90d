"""The places of runs in resident ones: each run and each batch once."""

from collections.abc import Iterator

import pytest

from asya.heavy.aws.hosts import Hosts, ResidentRun
from asya.protocol.job_runs import Host
from tests.doubles.heavy import HeavyWorld, heavy_world

RESIDENT = ResidentRun("clean", 1, "run1", "code")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as world:
        world.services.hosts.add(RESIDENT, now=world.services.now())
        yield world


def form(world: HeavyWorld, number: int) -> None:
    """Record a formed run."""
    key = {"pk": {"S": "RUN#clean"}, "sk": {"S": f"{number:010d}"}}
    world.dynamodb.put_item(TableName="asya-flights-pending", Item={**key, "state": {"S": "formed"}})


@pytest.fixture
def hosts(world: HeavyWorld) -> Hosts:
    for number in (2, 3):
        form(world, number)
    return world.services.hosts


@pytest.mark.rule("10.resident.place")
def test_10_a_batch_is_one_run(hosts: Hosts) -> None:
    assert hosts.place("clean", 2, RESIDENT.next)
    assert not hosts.place("clean", 3, RESIDENT.next)
    assert hosts.all("clean") == [ResidentRun("clean", 1, "run1", "code", batch=1)]


@pytest.mark.rule("10.resident.place")
@pytest.mark.parametrize("first", [None, Host(1, 1)])
@pytest.mark.parametrize("second", [None, Host(1, 1), Host(1, 2)])
def test_10_a_run_is_placed_once(hosts: Hosts, first: Host | None, second: Host | None) -> None:
    assert hosts.place("clean", 2, first)
    assert not hosts.place("clean", 2, second)


@pytest.mark.rule("10.resident.place")
def test_10_a_run_is_placed_anew_after_its_batch_was_closed(hosts: Hosts) -> None:
    hosts.place("clean", 2, RESIDENT.next)
    hosts.displace("clean", 2, RESIDENT.next)
    assert hosts.all("clean") == [ResidentRun("clean", 1, "run1", "code", batch=1, is_closed=True)]
    assert not hosts.place("clean", 2, RESIDENT.next)
    assert hosts.place("clean", 2, None)
    hosts.displace("clean", 2, RESIDENT.next)  # a slower dispatcher
    assert not hosts.place("clean", 2, None)


def test_a_resident_run_is_added_once(hosts: Hosts, world: HeavyWorld) -> None:
    hosts.place("clean", 2, RESIDENT.next)
    hosts.add(RESIDENT, now=world.services.now())
    assert hosts.all("clean")[0].batch == 1
