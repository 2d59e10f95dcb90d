"""Who shares a run (`protocol §10.isolation`)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from asya.heavy import run_formation
from asya.protocol.job_runs import Member
from asya.protocol.mesh_table import Actor, Batch, SparkJob


def member(number: int, tenant: str, *, was_charged: bool = False) -> Member:
    return Member(
        id=f"e{number}",
        position=0,
        attempt=1,
        admitted_at=f"2026-01-01T00:00:{number:02d}.000000Z",
        envelope=Raw(b"{}"),
        tenant=tenant,
        was_charged=was_charged,
    )


MEMBERS = st.lists(st.tuples(st.sampled_from(["", "ann", "bob", "eve"]), st.booleans()), max_size=25).map(
    lambda drawn: [member(number, tenant, was_charged=charged) for number, (tenant, charged) in enumerate(drawn)]
)
ISOLATION = st.sampled_from(["none", "tenant", "envelope"])


def runs(waiting: list[Member], size: int, isolation: run_formation.Isolation) -> list[list[Member]]:
    """The runs until nothing is pending."""
    formed = []
    while waiting:
        selection = run_formation.select(waiting, size, isolation=isolation)
        assert selection.more == (len(selection.members) < len(waiting))
        formed.append(list(selection.members))
        waiting = [each for each in waiting if each not in selection.members]
    return formed


@pytest.mark.rule("10.isolation")
@given(MEMBERS, st.integers(1, 10), ISOLATION)
def test_10_a_run_has_envelopes_that_may_share_it_and_each_has_one_run(
    waiting: list[Member], size: int, isolation: run_formation.Isolation
) -> None:
    formed = runs(waiting, size, isolation)

    assert sorted(each.id for run in formed for each in run) == sorted(each.id for each in waiting)
    for run in formed:
        tenants = {each.tenant for each in run}
        assert len(run) <= (1 if isolation == "envelope" else size)
        assert isolation != "tenant" or len(run) == 1 or (len(tenants) == 1 and "" not in tenants)
        assert [each.admitted_at for each in run] == sorted(each.admitted_at for each in run)
    assert all(first[0].admitted_at < second[0].admitted_at for first, second in pairwise(formed))


@pytest.mark.rule("10.isolation")
@given(MEMBERS, ISOLATION)
def test_10_a_driver_that_lingers_belongs_to_one_proven_tenant(
    members: list[Member], isolation: run_formation.Isolation
) -> None:
    job = SparkJob(job="jobs.work", linger=60.0, isolation=isolation)

    if run_formation.may_linger(members, job):
        tenants = {each.tenant for each in members}
        assert isolation == "none" or (isolation == "tenant" and tenants == {run_formation.driver_tenant(members, job)})
        assert isolation == "none" or "" not in tenants


def test_a_run_of_one_envelope_waits_for_none() -> None:
    alone = Actor(kind="spark", spark=SparkJob(job="j.f", isolation="envelope"), batch=Batch(size=500, window=15.0))
    shared = Actor(kind="spark", spark=SparkJob(job="j.f", isolation="tenant"), batch=Batch(size=500, window=15.0))

    assert run_formation.batch_of("heavy", alone) == Batch(size=1)
    assert run_formation.batch_of("heavy", shared) == shared.batch


def test_the_search_for_a_tenants_envelopes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_formation, "MOST_SKIPPED", 3)
    waiting = [member(0, "ann"), *(member(number, "bob") for number in range(1, 4)), member(4, "ann")]

    selection = run_formation.select(waiting, 10, isolation="tenant")

    assert [each.id for each in selection.members] == ["e0"]
    assert selection.more
