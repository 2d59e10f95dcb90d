"""The pool of drivers: which jobs a spare driver serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from asya_infra.mesh_file.spark_model import SparkSection
from asya_local.emr.drivers import pool
from asya_local.emr.settings import EmrSettings, WorkerSettings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class FakeDriver:
    """A driver without a process."""

    def __init__(self, settings: EmrSettings, folder: Path, memory: str) -> None:
        del settings, folder
        self.memory, self.alive = memory, True

    def end(self) -> None:
        self.alive = False


def a_pool(folder: Path, monkeypatch: pytest.MonkeyPatch) -> pool.DriverPool:
    monkeypatch.setattr(pool, "Driver", FakeDriver)
    names = ("caller_endpoint", "mark", "aws_endpoint", "python", "java_home", "spark_home", "temporary", "cache")
    settings = EmrSettings(port=0, state=str(folder), workers=WorkerSettings(spares=1), **dict.fromkeys(names, ""))
    return pool.DriverPool(settings)


def spares(drivers: pool.DriverPool) -> list[FakeDriver]:
    return cast("list[FakeDriver]", drivers._spares)


def test_a_spare_driver_serves_a_run_of_the_default_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dispatcher names the heap of the mesh file in megabytes."""
    drivers = a_pool(tmp_path, monkeypatch)
    drivers.fill()
    [spare] = spares(drivers)
    memory = SparkSection.model_validate({"job": "jobs.work"}).driver.memory
    assert drivers.acquire(f"{memory}m") is cast("pool.Driver", spare)


def test_spares_follow_the_size_of_the_latest_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drivers = a_pool(tmp_path, monkeypatch)
    drivers.fill()
    [small] = spares(drivers)
    drivers.acquire("8192m")
    drivers.fill()
    [large] = spares(drivers)
    assert (small.alive, large.memory) == (False, "8192m")
    assert drivers.acquire("8192m") is cast("pool.Driver", large)
