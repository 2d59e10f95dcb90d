"""The selection of a run's envelopes, its client token and its time limit (`protocol §10`)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from asya.heavy import run_formation
from asya.protocol.job_runs import Member, parse_run_id, run_id
from asya.protocol.mesh_table import Actor, Batch, SparkJob
from asya.protocol.times import format_time

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = Actor(kind="spark", spark=SparkJob(job="jobs.work"), timeout=600.0, batch=Batch(size=10))


def member(name: str, **more: object) -> Member:
    fields = {"position": 0, "attempt": 1, "admitted_at": "2026-01-01T00:00:00.000000Z", "envelope": Raw(b"{}")}
    return Member(id=name, **{**fields, **more})  # type: ignore[arg-type]


def due(seconds: float) -> str:
    return format_time(NOW + timedelta(seconds=seconds))


def test_the_oldest_are_taken_and_no_id_twice() -> None:
    waiting = [member("a"), member("a", position=2), member("b"), member("c")]

    assert [one.id for one in run_formation.select(waiting, 2).members] == ["a", "b"]
    assert run_formation.select(waiting, 2).more
    assert [one.position for one in run_formation.select(waiting, 3).members] == [0, 0, 0]
    assert run_formation.select(waiting, 3).more  # the second a
    assert not run_formation.select(waiting[2:], 2).more
    assert run_formation.select([], 2) == run_formation.Selection((), more=False)


def test_a_run_is_no_larger_than_a_manifest_may_be_but_takes_at_least_one() -> None:
    waiting = [member(name, envelope=Raw(b" " * 100)) for name in "abc"]

    assert [one.id for one in run_formation.select(waiting, 10, byte_limit=250).members] == ["a", "b"]
    assert [one.id for one in run_formation.select(waiting, 10, byte_limit=10).members] == ["a"]


@pytest.mark.rule("10.window")
@pytest.mark.parametrize(
    ("waiting", "left"),
    [
        ([], 0.0),
        ([member("a")], 15.0),
        ([member("a", admitted_at=due(-10))], 5.0),
        ([member("a", admitted_at=due(-14.5))], 0.0),  # SQS delays by whole seconds
        ([member("a", admitted_at=due(-20)), member("b")], 0.0),
        ([member(name) for name in "abcdefghij"], 0.0),  # full
        ([member(name) for name in "abcdefghijk"], 0.0),
        ([member("a", returned_by=1)], 0.0),
    ],
)
def test_a_window_is_open_until_its_oldest_envelope_has_waited_or_the_batch_is_full(
    waiting: list[Member], left: float
) -> None:
    selection = run_formation.select(waiting, 10)

    assert run_formation.window_left(selection, Batch(size=10, window=15.0), NOW) == left


def test_reading_stops_where_the_run_is_full() -> None:
    endless = (member(f"e{number}") for number in range(10**9))

    assert len(run_formation.select(endless, 5).members) == 5


@pytest.mark.rule("10.timeout.run")
@pytest.mark.parametrize(
    ("deadlines", "shape", "minutes"),
    [
        ([None], "payload", 35),  # 10 min, and 25 for the start
        ([None] * 3, "payload", 55),
        ([None] * 3, "dataframe", 35),
        ([None] * 1000, "payload", 360),  # max_run
        ([due(60), due(600)], "payload", 10),  # the latest deadline
        ([due(60), None], "payload", 45),  # one without a deadline lifts the cap
        ([due(3)], "payload", 1),
    ],
)
def test_the_time_limit_of_a_run(deadlines: list[str | None], shape: str, minutes: int) -> None:
    members = [member(f"e{place}", deadline_at=deadline) for place, deadline in enumerate(deadlines)]
    spec = replace(SPEC, spark=SparkJob(job="jobs.work", shape=shape))  # type: ignore[arg-type]

    manifest = run_formation.form(members, namespace="ns", actor="heavy", spec=spec, number=1, now=NOW)

    assert manifest.time_limit == minutes


@pytest.mark.rule("10.run.once")
def test_a_token_stands_for_one_run_of_these_envelopes_at_these_attempts() -> None:
    members = [member("a"), member("b")]
    variants = [
        run_formation.client_token("run", members),
        run_formation.client_token("run2", members),
        run_formation.client_token("run", members[:1]),
        run_formation.client_token("run", [members[0], replace(members[1], attempt=2)]),
        run_formation.client_token("run", [members[0], replace(members[1], generation=1)]),
        run_formation.client_token("run", [member("a,0,0,1;1:b")]),
    ]

    assert run_formation.client_token("run", members) == variants[0]
    assert len(set(variants)) == len(variants)
    assert all(len(token) == 64 and token.isalnum() for token in variants)


def test_an_actor_without_a_job_is_named() -> None:
    with pytest.raises(ValueError, match="'light' is of kind 'handler'"):
        run_formation.spark_job("light", Actor(kind="handler", handler="m.f"))


LABEL = st.text("abyz09-", max_size=30).map("a{}9".format)


@given(LABEL, LABEL, st.integers(1, 10**10 - 1))
def test_a_run_id_can_be_read_back(namespace: str, actor: str, number: int) -> None:
    name = run_id(namespace, actor, number)

    assert parse_run_id(name, namespace) == (actor, number)
    assert parse_run_id(name, f"{namespace}-x") is None


@pytest.mark.parametrize("name", ["", "asya.ns.a", "asya.ns.a.1", "asya.ns.a.000000000x", "asya.ns.a.b.0000000001"])
def test_other_names_are_no_run_ids(name: str) -> None:
    assert parse_run_id(name, "ns") is None
