"""Runs and resident drivers that tenants do not share (`protocol §10.isolation`)."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from asya.heavy.run_formation import Isolation
from asya.protocol.mesh_table import MeshTable, SparkJob
from tests.doubles.heavy import TABLE, HeavyWorld, heavy_world
from tests.doubles.resident import idle


def isolated(isolation: Isolation, linger: float = 0.0) -> MeshTable:
    job = SparkJob(job="flights.clean", isolation=isolation, linger=linger, max_run=3600.0)
    actor = replace(TABLE.actors["clean"], spark=job, fair_by="owner")
    return replace(TABLE, actors={**TABLE.actors, "clean": actor})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch, isolated("tenant")) as heavy:
        yield heavy


def make_pending(world: HeavyWorld, *names: str) -> None:
    """Makes envelopes pending whose tenants are the first letters of their names. Each names another one where callers may."""
    for name in names:
        world.send(name, headers={"x-asya-tenant": name[0], "tenant": "z", "owner": "z"})
        world.enqueue()


def runs(world: HeavyWorld) -> list[list[str]]:
    while world.dispatch():
        pass
    return [sorted(one.id for one in world.manifest(number).members) for number in range(1, len(world.emr.runs) + 1)]


@pytest.mark.rule("10.isolation", "3.tenant")
def test_10_no_run_has_envelopes_of_two_tenants(world: HeavyWorld) -> None:
    make_pending(world, "a1", "b1", "a2", "b2", "c1")

    assert runs(world) == [["a1", "a2"], ["b1", "b2"], ["c1"]]


@pytest.mark.rule("10.isolation")
def test_10_what_was_pending_before_the_option_shares_with_none(world: HeavyWorld) -> None:
    world.table = isolated("none")
    make_pending(world, "a1", "b1")
    world.table = isolated("tenant")
    make_pending(world, "a2")

    assert sorted(runs(world)) == [["a1"], ["a2"], ["b1"]]


@pytest.mark.rule("10.isolation")
def test_10_each_envelope_has_a_run(world: HeavyWorld) -> None:
    world.table = isolated("envelope")
    make_pending(world, "a1", "a2")

    assert runs(world) == [["a1"], ["a2"]]


@pytest.mark.rule("10.isolation", "10.resident.idle")
@pytest.mark.parametrize(("comes", "started"), [("a2", ["run1"]), ("b1", ["run1", "run2"])])
def test_10_a_resident_run_takes_batches_of_its_tenant_alone(world: HeavyWorld, comes: str, started: list[str]) -> None:
    world.table = isolated("tenant", linger=300.0)
    make_pending(world, "a1")
    world.dispatch()
    idle(world, batch=1)
    make_pending(world, comes)
    world.dispatch()

    assert list(world.emr.runs) == started
