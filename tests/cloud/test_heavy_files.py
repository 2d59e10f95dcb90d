"""The files of a job run on the deployed mesh, with IAM enforced: what a job may write and list."""

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


@pytest.mark.rule("1.references.list.access")
def test_1_a_job_lists_what_its_access_covers(heavy: HeavyCloud) -> None:
    for reference in ("listed/b [1].txt", "listed/a.txt", "listed/a.csv", "listed-2/c.txt"):
        heavy.cloud.mesh.upload(reference, b"one\ntwo\n")
    prefixes = ["listed/", "listed/none/", "", "listed-2/"]
    heavy.send_all({"lister-1": {"prefixes": prefixes}}, "lister")
    _, envelope = heavy.cloud.wait_for_result("lister-1")
    covered, empty, whole, neighbor = (envelope["payload"][prefix] for prefix in prefixes)
    assert (covered, empty) == ({"listed/a.txt": 2, "listed/b [1].txt": 2}, {})
    assert 'read: "*"' in whole
    assert 'read: "listed-2/*"' in neighbor
