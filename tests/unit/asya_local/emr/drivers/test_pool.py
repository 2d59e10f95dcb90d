"""The pool of drivers: which jobs a spare driver serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from asya_infra.mesh_file.actor_model import SparkSection
from asya_infra.mesh_file.sections import read_section
from asya_local.emr.drivers import pool
from asya_local.emr.local_spark import Launch
from asya_local.emr.settings import EmrSettings, WorkerSettings

if TYPE_CHECKING:
    from pathlib import Path


class FakeDriver:
    """A driver without a process."""

    def __init__(self, settings: EmrSettings, folder: Path, launch: Launch) -> None:
        del settings, folder
        self.launch, self.alive = launch, True

    def end(self) -> None:
        self.alive = False


def a_pool(
    folder: Path, monkeypatch: pytest.MonkeyPatch, java_home: str = "", *, reuse: bool = False
) -> pool.DriverPool:
    monkeypatch.setattr(pool, "Driver", FakeDriver)
    names = ("caller_endpoint", "mark", "aws_endpoint", "python", "spark_home", "temporary", "cache")
    settings = EmrSettings(
        port=0,
        state=str(folder),
        java_home=java_home,
        workers=WorkerSettings(spares=1, reuse=reuse),
        **dict.fromkeys(names, ""),
    )
    return pool.DriverPool(settings)


class FakeArchive:
    """Notes that it is built."""

    built: list[str]

    @classmethod
    def build_in_background(cls, command: list[str], environment: object) -> None:
        del environment
        cls.built.append(command[-1])


def spares(drivers: pool.DriverPool) -> list[FakeDriver]:
    return cast("list[FakeDriver]", drivers._spares)


def test_a_spare_driver_serves_a_run_of_the_default_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dispatcher names the heap of the mesh file in megabytes."""
    drivers = a_pool(tmp_path, monkeypatch)
    drivers.fill()
    [spare] = spares(drivers)
    memory = read_section(SparkSection, {"job": "jobs.work"}).driver.memory
    assert drivers.acquire(Launch(f"{memory}m")) is cast("pool.Driver", spare)


def test_spares_follow_the_size_of_the_latest_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drivers = a_pool(tmp_path, monkeypatch)
    drivers.fill()
    [small] = spares(drivers)
    drivers.acquire(Launch("8192m"))
    drivers.fill()
    [large] = spares(drivers)
    assert (small.alive, large.launch.memory) == (False, "8192m")
    assert drivers.acquire(Launch("8192m")) is cast("pool.Driver", large)


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize(
    "special",
    [
        Launch(jars=("/a.jar",)),
        Launch(java_options="-Da=1"),
        Launch(conf=(("spark.jars.packages", "a:b:1"),)),
    ],
)
def test_a_run_with_jars_or_options_has_a_jvm_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, special: Launch, *, reuse: bool
) -> None:
    drivers = a_pool(tmp_path, monkeypatch, reuse=reuse)
    drivers.fill()
    [spare] = spares(drivers)
    own = cast("FakeDriver", drivers.acquire(special))
    assert (own is spare, own.launch) == (False, special)
    drivers.release(cast("pool.Driver", own))
    assert (own.alive, spares(drivers)) == (False, [spare])
    assert drivers.acquire(Launch()) is cast("pool.Driver", spare)


def test_a_driver_that_is_reused_needs_no_spare_while_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drivers = a_pool(tmp_path, monkeypatch, reuse=True)
    drivers.fill()
    [only] = spares(drivers)
    for _ in range(3):
        assert drivers.acquire(Launch()) is cast("pool.Driver", only)
        drivers.fill()
        assert spares(drivers) == []
        drivers.release(cast("pool.Driver", only))
        drivers.fill()
        assert spares(drivers) == [only]


def test_a_driver_that_ended_or_has_jars_gets_a_spare_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drivers = a_pool(tmp_path, monkeypatch, reuse=True)
    special = drivers.acquire(Launch(jars=("/a.jar",)))
    drivers.fill()
    [spare] = spares(drivers)
    drivers.release(special)
    lent = drivers.acquire(Launch())
    assert lent is cast("pool.Driver", spare)
    spare.alive = False
    drivers.release(lent)
    drivers.fill()
    [another] = spares(drivers)
    assert another is not spare


def test_a_driver_that_is_not_reused_has_a_spare_while_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drivers = a_pool(tmp_path, monkeypatch)
    drivers.acquire(Launch())
    drivers.fill()
    assert len(spares(drivers)) == 1


def test_drivers_that_are_reused_need_no_archive_of_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drivers = a_pool(tmp_path, monkeypatch, java_home="/java", reuse=True)
    FakeArchive.built = []
    monkeypatch.setattr(pool, "_class_archive", lambda _settings: FakeArchive)
    for _ in range(3):
        drivers.release(drivers.acquire(Launch()))
    assert FakeArchive.built == []


def test_the_second_job_begins_the_archive_of_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloud for a single job would not use what takes half a minute of a processor."""
    drivers = a_pool(tmp_path, monkeypatch, java_home="/java")
    FakeArchive.built = []
    monkeypatch.setattr(pool, "_class_archive", lambda _settings: FakeArchive)
    built = []
    for _ in range(3):
        drivers.acquire(Launch())
        built.append(len(FakeArchive.built))
    assert built == [0, 1, 1]


def test_without_java_there_is_no_archive_of_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drivers = a_pool(tmp_path, monkeypatch)
    FakeArchive.built = []
    monkeypatch.setattr(pool, "_class_archive", lambda _settings: FakeArchive)
    for _ in range(2):
        drivers.acquire(Launch())
    assert FakeArchive.built == []
