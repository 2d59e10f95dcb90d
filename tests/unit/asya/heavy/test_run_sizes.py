"""Which size a run has (`protocol §10.size`)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from asya.heavy import run_formation
from asya.heavy.run_sizes import UnfitSizeError, measure, next_size, size_of, sized, sized_jobs
from asya.protocol.job_runs import Member
from asya.protocol.mesh_table import JobSize, SparkJob, WorkerSize

SIZES = (
    JobSize(name="small", up_to=10.0, conf={"a": "1"}),
    JobSize(name="medium", up_to=100.0, driver=WorkerSize(memory_mb=4096)),
    JobSize(name="large", executor=WorkerSize(cores=4, memory_mb=8192), max_executors=8),
)
JOB = SparkJob(job="jobs.score", sizes=SIZES, size_by="/rows", conf={"b": "2"})
IN_ORDER = SparkJob(job="jobs.score", sizes=SIZES)


def member(number: int, measured: float | None = None, **more: Any) -> Member:
    return Member(
        id=f"e{number:03d}",
        position=0,
        attempt=1,
        admitted_at=f"2026-01-01T00:00:{number % 60:02d}.000000Z",
        envelope=Raw(b"{}"),
        measure=measured,
        **more,
    )


@pytest.mark.rule("10.size")
@pytest.mark.parametrize(
    ("payload", "found", "size"),
    [
        ({"rows": 10}, 10.0, "small"),
        ({"rows": 10.5}, 10.5, "medium"),
        ({"rows": -1}, -1.0, "small"),
        ({"rows": 10**30}, 1e30, "large"),
        ({"rows": ["a"] * 11}, 11.0, "medium"),
        ({"rows": []}, 0.0, "small"),
        ({"rows": None}, None, "small"),
        ({}, None, "small"),
        (None, None, "small"),
        ([1, 2], None, "small"),
        ("rows", None, "small"),
    ],
)
def test_10_a_payload_selects_its_size(payload: object, found: float | None, size: str) -> None:
    assert measure(Raw(json.dumps(payload).encode()), "score", JOB) == found
    assert size_of(member(0, found), JOB) == size


@pytest.mark.rule("10.size")
def test_10_without_size_by_an_envelope_begins_with_the_first_size() -> None:
    assert measure(Raw(b'{"rows":"x"}'), "score", IN_ORDER) is None
    assert size_of(member(0, 500.0), IN_ORDER) == "small"
    assert size_of(member(0, 500.0), SparkJob(job="jobs.score")) == ""


@pytest.mark.rule("10.size.larger", "10.size.larger.end")
@pytest.mark.parametrize(
    ("measured", "grown", "size"),
    [
        (1.0, "medium", "medium"),
        (None, "large", "large"),
        (1000.0, "medium", "large"),  # a deployment has made it large meanwhile
        (1.0, "gone", "small"),
    ],
)
def test_10_what_ran_out_of_memory_runs_in_a_larger_size(measured: float | None, grown: str, size: str) -> None:
    assert size_of(member(0, measured, size=grown), JOB) == size


@pytest.mark.rule("10.size.larger")
def test_10_each_size_has_a_next_one_but_the_last() -> None:
    assert [next_size(JOB, name) for name in ("small", "medium", "large", "gone", "")] == [
        "medium",
        "large",
        "",
        "",
        "",
    ]
    assert next_size(SparkJob(job="jobs.score"), "") == ""


@pytest.mark.rule("10.size.unfit")
@pytest.mark.parametrize(
    ("value", "kind"),
    [('"12"', "text"), ("true", "a boolean"), ('{"a":1}', "an object"), ("1e999", "a number out of range")],
)
def test_10_another_value_is_an_error_that_names_actor_and_pointer(value: str, kind: str) -> None:
    with pytest.raises(UnfitSizeError) as raised:
        measure(Raw(f'{{"rows":{value}}}'.encode()), "score", JOB)
    assert raised.value.error.type == "ContractError"
    assert str(raised.value) == (
        "payload.rows: should be a number or a list, because '/rows' (size_by of score) selects the size of its run; "
        f"got {kind}"
    )


@pytest.mark.rule("10.size")
def test_10_the_job_in_a_size_has_its_workers_and_settings() -> None:
    jobs = dict(sized_jobs(JOB))
    assert list(jobs) == ["small", "medium", "large"]
    assert (jobs["small"].conf, jobs["medium"].driver.memory_mb, jobs["large"].max_executors) == ({"a": "1"}, 4096, 8)
    assert all(job == sized(job, name) for name, job in jobs.items())
    plain = SparkJob(job="jobs.score")
    assert sized_jobs(plain) == [("", plain)]


@pytest.mark.rule("10.size.alone")
def test_10_a_size_that_a_deployment_took_away_has_the_workers_of_the_actor() -> None:
    assert sized(JOB, "huge") == SparkJob(job="jobs.score", conf={"b": "2"})


MEASURES = st.one_of(st.none(), st.sampled_from([1.0, 50.0, 1000.0]))


@pytest.mark.rule("10.size.alone")
@given(st.lists(st.tuples(MEASURES, st.booleans()), max_size=25), st.integers(1, 10))
def test_10_envelopes_of_different_sizes_never_share_a_run(drawn: list[tuple[float | None, bool]], most: int) -> None:
    waiting = [member(number, measured, was_charged=charged) for number, (measured, charged) in enumerate(drawn)]
    formed = []
    while waiting:
        selection = run_formation.select(waiting, most, size_name=lambda each: size_of(each, JOB))
        assert selection.more == (len(selection.members) < len(waiting))
        assert selection.members[0] == waiting[0], "no size waits for another one"
        formed.append(selection.members)
        waiting = [each for each in waiting if each not in selection.members]

    assert sum(map(len, formed)) == len(drawn)
    assert all(len({size_of(each, JOB) for each in run}) == 1 for run in formed)
