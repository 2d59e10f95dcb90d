"""Tests resident runs (protocol §10) on the deployed mesh, with IAM enforced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from asya.protocol import names
from tests.cloud.deployed_cloud import until
from tests.cloud.heavy_bursts import all_bursts

if TYPE_CHECKING:
    from tests.cloud.heavy_cloud import HeavyCloud

pytestmark = [pytest.mark.cloud, pytest.mark.slow]

FOLDER = "resident/"
BURST_SECONDS = 10 * 60.0


def residents(heavy: HeavyCloud) -> list[dict[str, Any]]:
    """The items of the resident runs of the actor."""
    table = names.table_name("heavy", "pending")
    pages = (
        heavy.client("dynamodb")
        .get_paginator("query")
        .paginate(
            TableName=table,
            KeyConditionExpression="pk = :residents",
            ExpressionAttributeValues={":residents": {"S": "RESIDENT#resident"}},
        )
    )
    return [item for page in pages for item in page["Items"]]


def wait_for_bursts(heavy: HeavyCloud) -> None:
    """Waits for the envelopes that were sent at the start, because an idle run makes room for their runs."""
    for payloads in all_bursts().values():
        for name in payloads:
            heavy.cloud.wait_for_end(name, BURST_SECONDS)


def deaths(heavy: HeavyCloud, run: str) -> int:
    """The number of failures on record of a run."""
    key = {"pk": {"S": "DEATHS#resident"}, "sk": {"S": run}}
    item = heavy.client("dynamodb").get_item(TableName=names.table_name("heavy", "pending"), Key=key).get("Item")
    return int(item["deaths"]["N"]) if item else 0


@pytest.mark.rule("10.resident", "10.resident.commit", "10.resident.idle")
def test_10_envelopes_share_a_driver_that_lingers(heavy: HeavyCloud) -> None:
    wait_for_bursts(heavy)
    heavy.send_all({"resident-1": {}}, "resident")
    (first,) = heavy.result_payloads(["resident-1"])
    (resident,) = residents(heavy)

    # The data came after the start of the job run, and the rows are in S3 before its end.
    connection = heavy.cloud.mesh.connection
    s3, place = heavy.client("s3"), connection.data
    s3.put_object(Bucket=place.bucket, Key=f"{place.prefix}{FOLDER}lines.txt", Body=b"one\ntwo\n")
    heavy.send_all({"resident-2": {"lines": f"{FOLDER}lines.txt", "rows": f"{FOLDER}rows"}}, "resident")
    (second,) = heavy.result_payloads(["resident-2"])
    assert second == {"process": first["process"], "rows": 2}
    written = s3.list_objects_v2(Bucket=place.bucket, Prefix=f"{place.prefix}{FOLDER}rows/")["Contents"]
    assert any(entry["Key"].endswith(".parquet") for entry in written)
    assert [item["placed"]["N"] for item in residents(heavy)] == ["1"]

    # A driver that dies while it is idle costs nobody an attempt.
    assert heavy.kill_run(resident["job_run_id"]["S"])
    until(lambda: not residents(heavy) or None, "the item of the dead job run to go")
    heavy.send_all({"resident-3": {}}, "resident")
    (third,) = heavy.result_payloads(["resident-3"])
    assert third["process"] != first["process"]
    assert deaths(heavy, "0000000003") == 0
