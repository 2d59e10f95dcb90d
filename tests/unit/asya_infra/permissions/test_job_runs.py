"""What the job runs of an actor share: their access policy holds for each run alike, so it names nothing of one run."""

from pathlib import Path

import pytest

from asya_infra.addresses import Addresses
from asya_infra.mesh_file import load_mesh
from asya_infra.permissions.evaluation import Request, is_allowed
from asya_infra.permissions.grant import document
from asya_infra.permissions.job_runs import run_access, run_files

PLACE = Addresses(namespace="shop", partition="aws", region="r", account="1", url_suffix="amazonaws.com")
BUCKET = "arn:aws:s3:::asya-shop-1-r"
MESH = """
namespace: shop
jobs: jobs
actors:
  crunch: {spark: {job: jobs.crunch, linger: 1m}, access: [{bucket: data, read: ["books/*"], write: ["sums/*"]}]}
tools: {crunch: {description: Crunches, route: [crunch]}}
"""
ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
OF_A_RUN = (
    *(f"runs/crunch/0000000007/{name}" for name in ("manifest.json", "attempts/a/commit.json", "batches/presence.json", "logs/a")),
    *("pending/crunch/abc.json", "data/scratch/crunch/0000000007/a/0/part", "data/scratch/crunch"),
)  # fmt: skip


@pytest.mark.rule("10.job-reads", "10.job-writes")
@pytest.mark.parametrize("key", OF_A_RUN)
def test_10_the_policy_of_all_runs_opens_nothing_of_one_run(tmp_path: Path, key: str) -> None:
    """The session of a run is the union of its own policy and that of all runs: what both had would open other runs."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "jobs.py").write_text("def crunch(spark, frame): return frame\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    mesh = load_mesh(tmp_path / "mesh.yaml").mesh
    shared = document(run_access(mesh, PLACE, "crunch", f"{BUCKET}-code/*"))["Statement"]
    assert is_allowed(shared, Request("s3:GetObject", f"{BUCKET}/data/books/a"))
    opened = [action for action in ACTIONS if is_allowed(shared, Request(action, f"{BUCKET}/{key}"))]
    listed = is_allowed(shared, Request("s3:ListBucket", BUCKET, {"s3:prefix": key}))
    assert (opened, listed) == ([], False)
    role = document(run_files(mesh, PLACE, "crunch", f"{BUCKET}-code/*"))["Statement"]
    assert is_allowed(role, Request("s3:GetObject", f"{BUCKET}/{key}"))
