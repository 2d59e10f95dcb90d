"""Tests the index of results: x-sink and x-sump write rows, and a job compacts each day (`protocol §11`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cloud.deployed_cloud import until

if TYPE_CHECKING:
    from asya.tasks.view import TaskView
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud


def send(cloud: DeployedCloud, actor: str, envelope_id: str, payload: object) -> TaskView:
    """Sends an envelope to one actor and waits for the end of the task."""
    envelope = {"id": envelope_id, "route": {"prev": [], "curr": actor, "next": []}, "payload": payload}
    cloud.send_raw(actor, json.dumps(envelope))
    return cloud.wait_for_end(envelope_id)


def keys(cloud: DeployedCloud, folder: str) -> list[str]:
    """Lists the keys in a folder of the results."""
    results = cloud.mesh.connection.results
    pages = (
        cloud.client("s3")
        .get_paginator("list_objects_v2")
        .paginate(Bucket=results.bucket, Prefix=results.prefix + folder)
    )
    return [item["Key"] for page in pages for item in page.get("Contents", [])]


def rows(cloud: DeployedCloud, day: str, envelope_id: str) -> list[dict[str, Any]]:
    """Reads the rows of an envelope before their compaction."""
    bucket = cloud.mesh.connection.results.bucket
    matches = []
    for key in keys(cloud, f"index/recent/dt={day}/"):
        lines = (cloud.mesh.fetch(f"s3://{bucket}/{key}") or b"").splitlines()
        matches += [row for row in map(json.loads, lines) if row["id"] == envelope_id]
    return matches


@pytest.fixture(scope="module")
def failed(cloud: DeployedCloud) -> TaskView:
    """A task that failed at the first actor."""
    return send(cloud, "inspect-dataset", "index-failed", {"flights": "raw/not-there.csv"})


@pytest.mark.rule("11.index")
def test_each_end_is_a_row_of_its_day(cloud: DeployedCloud, failed: TaskView) -> None:
    day = failed.updated_at[:10]
    (row,) = until(lambda: rows(cloud, day, "index-failed") or None, "the row of x-sump")
    assert (row["phase"], row["last_actor"], row["error_type"]) == ("failed", "inspect-dataset", "FileNotFoundError")
    assert (row["namespace"], row["root_id"], row["recorded_by"]) == ("flights", "index-failed", "x-sump")
    assert row["tool"] is None
    envelope = json.loads(cloud.mesh.fetch(row["result_uri"]) or b"")
    assert (envelope["id"], envelope["status"]["phase"]) == ("index-failed", "failed")


@pytest.mark.rule("11.index.tool", "3.tool")
def test_a_row_names_the_tool_that_started_the_task(cloud: DeployedCloud) -> None:
    task_id = cloud.mesh.call_tool("analyse-flights", b'{"flights": "raw/not-there.csv"}')
    task = cloud.wait_for_end(task_id)
    (row,) = until(lambda: rows(cloud, task.updated_at[:10], task_id) or None, "the row of x-sump")
    assert (task.tool, row["tool"]) == ("analyse-flights", "analyse-flights")


@pytest.mark.rule("11.metadata")
def test_the_metadata_of_an_object_describes_its_envelope(cloud: DeployedCloud, failed: TaskView) -> None:
    results = cloud.mesh.connection.results
    key = f"{results.prefix}failed/index-failed.json"
    metadata = cloud.client("s3").head_object(Bucket=results.bucket, Key=key)["Metadata"]
    assert metadata == {
        "id": "index-failed",
        "root": "index-failed",
        "namespace": "flights",
        "generation": "0",
        "phase": "failed",
        "last-actor": "inspect-dataset",
    }


@pytest.mark.rule("11.index.compacted")
def test_the_index_job_compacts_a_day_into_one_file(cloud: DeployedCloud, failed: TaskView) -> None:
    day = failed.updated_at[:10]
    first = send(cloud, "x-index", "index-first", {"days": [day]})
    assert first.status == "succeeded", first.error
    [compacted] = cloud.envelope(first)["payload"]["compacted"]
    assert compacted["day"] == day
    assert compacted["rows"] >= 1
    [file] = [key for key in keys(cloud, f"index/days/dt={day}/") if key.endswith(".parquet")]

    # The second run also compacts the row of the first one.
    second = send(cloud, "x-index", "index-again", {"days": [day]})
    assert second.status == "succeeded", second.error
    [compacted_again] = cloud.envelope(second)["payload"]["compacted"]
    assert compacted_again["rows"] > compacted["rows"]
    files = [key for key in keys(cloud, f"index/days/dt={day}/") if key.endswith(".parquet")]
    assert len(files) == 1
    assert files != [file]


def test_the_index_job_rejects_an_invalid_day(cloud: DeployedCloud) -> None:
    """An invalid day never becomes part of a path."""
    task = send(cloud, "x-index", "index-elsewhere", {"days": ["../../succeeded"]})
    assert (task.status, task.error.type if task.error else None) == ("failed", "ValueError")
