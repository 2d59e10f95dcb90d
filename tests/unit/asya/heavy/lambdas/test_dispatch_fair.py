"""Runs take the pending envelopes of tenants in turns (`protocol §10.fair`)."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from asya.protocol.mesh_table import MeshTable
from tests.doubles.heavy import TABLE, HeavyWorld, heavy_world


def with_tenants(fair_by: str | None) -> MeshTable:
    return replace(TABLE, actors={**TABLE.actors, "clean": replace(TABLE.actors["clean"], fair_by=fair_by)})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch, with_tenants("tenant")) as heavy:
        yield heavy


def make_pending(world: HeavyWorld, *names: str) -> None:
    """Makes envelopes pending whose tenants are the first letters of their names; `0` has none."""
    for name in names:
        world.send(name, headers={} if name[0] == "0" else {"tenant": name[0]})
        world.enqueue()


def runs(world: HeavyWorld) -> list[list[str]]:
    """The ids in each run."""
    while world.dispatch():
        pass
    return [sorted(one.id for one in world.manifest(number).members) for number in range(1, len(world.emr.runs) + 1)]


@pytest.mark.rule("10.fair")
def test_10_a_tenant_with_many_envelopes_does_not_delay_the_others(world: HeavyWorld) -> None:
    make_pending(world, "a1", "a2", "a3", "a4", "a5", "b1", "c1", "b2", "01")

    assert runs(world) == [["a1", "b1", "c1"], ["01", "a2", "b2"], ["a3", "a4", "a5"]]


@pytest.mark.rule("10.fair")
def test_10_a_tenant_that_comes_later_is_in_the_next_run(world: HeavyWorld) -> None:
    make_pending(world, *(f"a{number}" for number in range(7)))
    world.dispatch()
    make_pending(world, "b1")

    assert runs(world) == [["a0", "a1", "a2"], ["a3", "a4", "b1"], ["a5", "a6"]]


def test_envelopes_with_and_without_rounds_take_turns(world: HeavyWorld) -> None:
    """`fair_by` is new: what was pending before has no rounds."""
    world.table = with_tenants(None)
    make_pending(world, "a1", "a2", "a3", "a4")
    world.table = with_tenants("tenant")
    make_pending(world, "b1", "b2")

    assert runs(world) == [["a1", "a2", "b1"], ["a3", "a4", "b2"]]
    assert world.items("PENDING#") == []


def test_a_table_without_an_answer_keeps_the_messages(world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no answer")

    monkeypatch.setattr("asya.heavy.aws.pending.TenantRounds.take", refuse)
    world.send("a1", headers={"tenant": "a"})
    with pytest.raises(AssertionError):
        world.enqueue()

    assert world.items("PENDING#") == []


@pytest.mark.rule("10.fair", "3.tenant")
def test_10_with_owner_nobody_fills_the_round_of_another_tenant(world: HeavyWorld) -> None:
    """Eve names Alice in each header that a caller may write."""
    world.table = with_tenants("owner")
    for number in range(6):
        world.send(f"e{number}", headers={"x-asya-tenant": "EVE", "owner": "ALICE", "tenant": "ALICE"})
        world.enqueue()
    world.send("a0", headers={"x-asya-tenant": "ALICE"})
    world.enqueue()

    assert runs(world) == [["a0", "e0", "e1"], ["e2", "e3", "e4"], ["e5"]]
