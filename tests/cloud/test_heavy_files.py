"""The files of a job run on the deployed mesh, with IAM enforced: what a job may write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cloud.heavy_cloud import HeavyCloud

pytestmark = [pytest.mark.cloud, pytest.mark.slow]

RUN = "runs/writer/0000000001"
WRITTEN = (f"{RUN}/attempts/x/part-000009.jsonl", f"{RUN}/logs/x.gz", "data/scratch/writer/0000000001/x")
REFUSED = (
    f"{RUN}/manifest.json",
    "runs/writer/0000000002/manifest.json",
    "runs/writer/0000000002/attempts/x/commit.json",
    "runs/square/0000000001/manifest.json",
    "data/scratch/writer/0000000002/x",
    "data/scratch/square/0000000001/x",
    "runs/writer/0000000001/batches/presence.json",
    "pending/writer/x.json",
    "payloads/ab/x.json",
)


@pytest.mark.rule("10.job-writes")
def test_10_a_job_cannot_write_its_manifest(heavy: HeavyCloud) -> None:
    """It holds the credentials of its run, and the session policy and the role decide."""
    bucket = heavy.cloud.mesh.connection.data.bucket
    heavy.send_all({"writer-1": {"bucket": bucket, "keys": [*WRITTEN, *REFUSED]}}, "writer")
    _, envelope = heavy.cloud.wait_for_result("writer-1")
    assert envelope["payload"] == {**dict.fromkeys(WRITTEN, "written"), **dict.fromkeys(REFUSED, "AccessDenied")}
