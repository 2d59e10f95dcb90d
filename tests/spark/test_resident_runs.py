"""Drivers of resident runs: further batches in one process, and how they end."""

import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from asya.heavy.run_formation import encode_manifest
from asya.protocol.job_runs import Commit, Manifest, Place, RunFolder
from asya_spark import resident
from asya_spark.calls import time_limit
from asya_spark.main import run
from asya_spark.resident import Linger
from tests.spark import sample_jobs
from tests.spark.job_run import JOBS, member

pytestmark = pytest.mark.usefixtures("data_folder")


def write_manifest(root: Path, number: int, payloads: list[Any], place: Place | None = None, **changes: Any) -> Path:
    """Write the manifest of a run, into its own folder or that of a batch."""
    settings = {"job": f"{JOBS}.by_payload", "shape": "payload", "timeout": 600.0, "time_limit": 60, **changes}
    manifest = Manifest(
        run_id=f"asya.ns.heavy.{number:010d}",
        namespace="ns",
        actor="heavy",
        number=number,
        formed_at="2026-01-01T00:00:00Z",
        client_token="t",
        members=tuple(member(index, payload) for index, payload in enumerate(payloads)),
        **settings,
    )
    path = root / RunFolder("heavy", number, place).prefix / "manifest.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_manifest(manifest))
    return path


def commits(root: Path, number: int, place: Place | None = None) -> list[Commit]:
    """The commits of a run."""
    folder = root / RunFolder("heavy", number, place).attempts
    return [msgspec.json.decode(path.read_bytes(), type=Commit) for path in folder.glob("*/commit.json")]


def close_mark(root: Path, batch: int) -> dict[str, Any]:
    """What stands in place of the manifest of a batch."""
    path = root / RunFolder("heavy", 0, Place(7, batch)).prefix / "manifest.json"
    content: dict[str, Any] = json.loads(path.read_text())
    return content


@pytest.mark.rule("10.resident")
def test_10_a_driver_takes_one_batch_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    first = write_manifest(tmp_path, 7, [{"do": "none"}], linger=0.0)
    write_manifest(tmp_path, 8, [{"do": "none"}, {"do": "none"}], Place(7, 1))
    write_manifest(tmp_path, 9, [{"do": "none"}], Place(7, 2))
    run(spark, first.as_uri(), linger=Linger(0.0, 60.0))
    assert [len(commits(tmp_path, *place)) for place in ((7, None), (8, Place(7, 1)), (9, Place(7, 2)))] == [1, 1, 1]
    (commit,) = commits(tmp_path, 8, Place(7, 1))
    assert commit.run_id == "asya.ns.heavy.0000000008"
    assert sum(part.last - part.first + 1 for part in commit.parts) == 2
    assert close_mark(tmp_path, 3) == {"closed": "linger"}


@pytest.mark.rule("10.resident.at-once")
def test_10_a_driver_says_that_it_is_idle_before_it_commits(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_manifest(tmp_path, 7, [{"do": "none"}])
    presence = tmp_path / RunFolder("heavy", 7).prefix / "batches" / "presence.json"
    said: list[tuple[int, int]] = []
    write = resident.Batches.announce

    def announce(self: resident.Batches) -> None:
        write(self)
        said.append((json.loads(presence.read_text())["batch"], len(commits(tmp_path, 7))))

    monkeypatch.setattr(resident.Batches, "announce", announce)
    run(spark, first.as_uri(), linger=Linger(0.0, 60.0))
    assert said == [(1, 0)]


@pytest.mark.rule("10.resident.idle")
def test_10_a_driver_that_waits_goes_on_to_name_the_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "PRESENCE_SECONDS", 0.0)
    monkeypatch.setattr(resident, "POLL_SECONDS", 0.01)
    first = write_manifest(tmp_path, 7, [{"do": "none"}])
    write_manifest(tmp_path, 8, [{"do": "none"}], Place(7, 1))
    run(spark, first.as_uri(), linger=Linger(0.5, 60.0))
    presence = tmp_path / RunFolder("heavy", 7).prefix / "batches" / "presence.json"
    assert json.loads(presence.read_text())["batch"] == 2


@pytest.mark.rule("10.resident")
def test_10_a_batch_that_comes_while_the_driver_waits_is_taken(spark: SparkSession, tmp_path: Path) -> None:
    first = write_manifest(tmp_path, 7, [{"do": "none"}])

    def dispatch() -> None:
        presence = tmp_path / RunFolder("heavy", 7).prefix / "batches" / "presence.json"
        while not presence.exists():
            threading.Event().wait(0.05)
        draft = write_manifest(tmp_path / "draft", 8, [{"do": "none"}], Place(7, 1))
        path = tmp_path / RunFolder("heavy", 8, Place(7, 1)).prefix / "manifest.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.rename(path)
        mark = tmp_path / RunFolder("heavy", 0, Place(7, 2)).prefix / "manifest.json"
        mark.parent.mkdir(parents=True)
        mark.write_text('{"closed":"room"}')

    thread = threading.Thread(target=dispatch, daemon=True)
    thread.start()
    run(spark, first.as_uri(), linger=Linger(600.0, 60.0))
    thread.join(60.0)
    assert len(commits(tmp_path, 8, Place(7, 1))) == 1


@pytest.mark.rule("10.resident")
@pytest.mark.parametrize(
    ("limit", "is_running", "reason"), [(20.0, True, "limit"), (600.0, False, "ended"), (600.0, True, "linger")]
)
def test_10_a_driver_says_why_it_ends(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: float,
    is_running: bool,
    reason: str,
) -> None:
    monkeypatch.setattr("asya_spark.main.is_running", lambda _: is_running)
    # 20 minutes less a reserve of 4 are less than the 1,000 s that an envelope may take.
    first = write_manifest(tmp_path, 7, [{"do": "none"}], timeout=1000.0)
    run(spark, first.as_uri(), linger=Linger(0.0, limit))
    assert close_mark(tmp_path, 1) == {"closed": reason}


def test_a_job_that_cannot_be_loaded_takes_no_batch(spark: SparkSession, tmp_path: Path) -> None:
    first = write_manifest(tmp_path, 7, [{"do": "none"}], job="no.such_job")
    batch = write_manifest(tmp_path, 8, [{"do": "none"}], Place(7, 1))
    run(spark, first.as_uri(), linger=Linger(600.0, 60.0))
    assert commits(tmp_path, 7)[0].error is not None
    assert not (batch.parent / "attempts").exists()


def test_a_driver_with_abandoned_code_takes_no_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limit, "GRACE_SECONDS", 0.2)
    first = write_manifest(tmp_path, 7, [{"do": "ignore-interruption"}], timeout=0.5)
    batch = write_manifest(tmp_path, 8, [{"do": "none"}], Place(7, 1))
    try:
        run(spark, first.as_uri(), linger=Linger(600.0, 60.0))
    finally:
        sample_jobs.RELEASED.set()
    assert not (batch.parent / "attempts").exists()
