"""The index of results: x-sink and x-sump write rows, the mesh's own job makes a day of them (`protocol §11`)."""

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
    """Send an envelope to an actor alone; the task as it ended."""
    envelope = {"id": envelope_id, "route": {"prev": [], "curr": actor, "next": []}, "payload": payload}
    cloud.send_raw(actor, json.dumps(envelope))
    return cloud.wait_for_end(envelope_id)


def keys(cloud: DeployedCloud, folder: str) -> list[str]:
    """The objects of a folder of the results."""
    place = cloud.mesh.connection.results
    pages = (
        cloud.client("s3").get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=place.prefix + folder)
    )
    return [item["Key"] for page in pages for item in page.get("Contents", [])]


def rows(cloud: DeployedCloud, day: str, envelope_id: str) -> list[dict[str, Any]]:
    """What the index tells of an envelope, as it came."""
    bucket = cloud.mesh.connection.results.bucket
    found = []
    for key in keys(cloud, f"index/recent/dt={day}/"):
        lines = (cloud.mesh.fetch(f"s3://{bucket}/{key}") or b"").splitlines()
        found += [row for row in map(json.loads, lines) if row["id"] == envelope_id]
    return found


@pytest.fixture(scope="module")
def failed(cloud: DeployedCloud) -> TaskView:
    """A task that failed at the first actor."""
    return send(cloud, "inspect-dataset", "index-failed", {"flights": "raw/not-there.csv"})


@pytest.mark.rule("11.index")
def test_an_end_is_a_row_under_its_day(cloud: DeployedCloud, failed: TaskView) -> None:
    day = failed.updated_at[:10]
    (row,) = until(lambda: rows(cloud, day, "index-failed") or None, "the row of x-sump")
    assert (row["phase"], row["last_actor"], row["error_type"]) == ("failed", "inspect-dataset", "FileNotFoundError")
    assert (row["namespace"], row["root_id"], row["recorded_by"]) == ("flights", "index-failed", "x-sump")
    envelope = json.loads(cloud.mesh.fetch(row["result_uri"]) or b"")
    assert (envelope["id"], envelope["status"]["phase"]) == ("index-failed", "failed")


@pytest.mark.rule("11.metadata")
def test_s3_alone_tells_whose_result_an_object_is(cloud: DeployedCloud, failed: TaskView) -> None:
    place = cloud.mesh.connection.results
    key = f"{place.prefix}failed/index-failed.json"
    told = cloud.client("s3").head_object(Bucket=place.bucket, Key=key)["Metadata"]
    assert told == {
        "id": "index-failed",
        "root": "index-failed",
        "namespace": "flights",
        "generation": "0",
        "phase": "failed",
        "last-actor": "inspect-dataset",
    }


@pytest.mark.rule("11.index.compacted")
def test_the_meshs_own_job_makes_a_day_of_them(cloud: DeployedCloud, failed: TaskView) -> None:
    day = failed.updated_at[:10]
    first = send(cloud, "x-index", "index-first", {"days": [day]})
    assert first.status == "succeeded", first.error
    [compacted] = cloud.envelope(first)["payload"]["compacted"]
    assert compacted["day"] == day
    assert compacted["rows"] >= 1
    [file] = [key for key in keys(cloud, f"index/days/dt={day}/") if key.endswith(".parquet")]

    # Once more: what it did itself has become a row, and the day is one file again.
    again = send(cloud, "x-index", "index-again", {"days": [day]})
    assert again.status == "succeeded", again.error
    [compacted_again] = cloud.envelope(again)["payload"]["compacted"]
    assert compacted_again["rows"] > compacted["rows"]
    files = [key for key in keys(cloud, f"index/days/dt={day}/") if key.endswith(".parquet")]
    assert len(files) == 1
    assert files != [file]


def test_the_job_may_not_go_where_the_index_is_not(cloud: DeployedCloud) -> None:
    """A day that is no day never becomes part of a path."""
    task = send(cloud, "x-index", "index-elsewhere", {"days": ["../../succeeded"]})
    assert (task.status, task.error.type if task.error else None) == ("failed", "ValueError")
