"""Runs in the size of their envelopes (`protocol §10.size`)."""

import shlex
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from asya.heavy.aws.dispatch_requests import DispatchRequest, encode_request
from asya.protocol.mesh_table import JobSize, MeshTable, SparkJob, WorkerSize
from tests.doubles.heavy import TABLE, HeavyWorld, heavy_world
from tests.doubles.resident import idle

SMALL = JobSize(name="small", up_to=10.0)
LARGE = JobSize(name="large", driver=WorkerSize(memory_mb=8192), conf={"spark.sql.shuffle.partitions": "400"})


def with_sizes(*sizes: JobSize, linger: float = 0.0) -> MeshTable:
    job = SparkJob(job="flights.clean", sizes=sizes, size_by="/rows", linger=linger, max_run=3600.0)
    return replace(TABLE, actors={**TABLE.actors, "clean": replace(TABLE.actors["clean"], spark=job)})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch, with_sizes(SMALL, LARGE)) as heavy:
        yield heavy


def make_pending(world: HeavyWorld, **rows: object) -> None:
    for name, value in rows.items():
        world.send(name, {"rows": value})
        world.enqueue()


def runs(world: HeavyWorld) -> dict[str, list[str]]:
    """The envelopes of each run, by its size."""
    while world.dispatch():
        pass
    manifests = [world.manifest(number) for number in range(1, len(world.emr.runs) + 1)]
    return {each.size: sorted(member.id for member in each.members) for each in manifests}


def parameters(world: HeavyWorld, job_run_id: str) -> list[str]:
    submitted = world.emr.runs[job_run_id]["request"]["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"]
    return shlex.split(submitted)


@pytest.mark.rule("10.size", "10.size.alone")
def test_10_a_run_has_the_workers_of_its_envelopes_size(world: HeavyWorld) -> None:
    make_pending(world, a=3, b=11, c=[1], d=10**9, e=None)

    assert runs(world) == {"small": ["a", "c", "e"], "large": ["b", "d"]}
    assert "spark.driver.memory=2048m" in parameters(world, "run1")
    assert {"spark.driver.memory=8192m", "spark.sql.shuffle.partitions=400"} <= {*parameters(world, "run2")}
    record = world.services.records.get("clean", 2)
    assert record is not None
    assert record.size == "large"


@pytest.mark.rule("10.size.unfit")
def test_10_a_payload_with_another_value_fails_before_it_is_pending(world: HeavyWorld) -> None:
    make_pending(world, a="12", b=1)

    assert runs(world) == {"small": ["b"]}
    (failed,) = world.bodies("x-sink")
    assert (failed["id"], failed["status"]["phase"]) == ("a", "failed")
    assert failed["status"]["error"]["type"] == "ContractError"
    assert "'/rows' (size_by of clean)" in failed["status"]["error"]["message"]


@pytest.mark.rule("10.size")
def test_10_the_sizes_are_those_of_the_deployment_that_forms_the_run(world: HeavyWorld) -> None:
    make_pending(world, a=3)
    world.table = with_sizes(replace(SMALL, up_to=2.0), LARGE)

    assert runs(world) == {"large": ["a"]}


@pytest.mark.rule("10.size.alone")
def test_10_a_formed_run_whose_size_is_gone_starts_with_the_workers_of_its_actor(world: HeavyWorld) -> None:
    world.emr.refusals = ["ThrottlingException"]
    make_pending(world, a=11)
    world.dispatch()
    world.table = with_sizes(SMALL, replace(LARGE, name="huge"))
    world.put("x-dispatch", encode_request(DispatchRequest("clean")))

    assert runs(world) == {"large": ["a"]}
    assert "spark.driver.memory=2048m" in parameters(world, "run1")


@pytest.mark.rule("10.size.resident")
@pytest.mark.parametrize(("rows", "started"), [(5, ["run1"]), (50, ["run1", "run2"])])
def test_10_a_resident_run_takes_batches_of_its_size_alone(world: HeavyWorld, rows: int, started: list[str]) -> None:
    world.table = with_sizes(SMALL, LARGE, linger=300.0)
    make_pending(world, a=1)
    world.dispatch()
    idle(world, batch=1)
    make_pending(world, b=rows)
    world.dispatch()

    assert list(world.emr.runs) == started
    assert [each.is_closed for each in world.services.residents.all("clean")] == [False] * len(started)
