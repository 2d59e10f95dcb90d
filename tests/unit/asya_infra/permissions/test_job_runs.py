"""What the job runs of an actor share: their access policy holds for each run alike, so it names nothing of one run."""

from pathlib import Path

import pytest

from asya_infra.addresses import Addresses
from asya_infra.mesh_file import load_mesh
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.permissions.evaluation import Request, is_allowed
from asya_infra.permissions.grant import document
from asya_infra.permissions.job_runs import run_access, run_files

PLACE = Addresses(namespace="shop", partition="aws", region="r", account="1", url_suffix="amazonaws.com")
BUCKET = "arn:aws:s3:::asya-shop-1-r"
MESH = """
namespace: shop
jobs: jobs
actors:
  crunch:
    spark: {job: jobs.crunch, linger: 1m, isolation: tenant}
    fair_by: owner
    access: [{bucket: data, read: ["books/*", "raw/{tenant}/*"], write: ["sums/*"]}, {bucket: lake, write: ["{tenant}/*"]}]
gateway: {jwt: {issuer: "https://login.example.com/", audience: [shop], tenant: org_id}}
tools: {crunch: {description: Crunches, route: [crunch]}}
"""
ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
OF_A_RUN = (
    *(f"runs/crunch/0000000007/{name}" for name in ("manifest.json", "attempts/a/commit.json", "batches/presence.json", "logs/a")),
    *("pending/crunch/abc.json", "data/scratch/crunch/0000000007/a/0/part", "data/scratch/crunch", "data/raw/acme/a"),
)  # fmt: skip


def shop(tmp_path: Path) -> MeshFile:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "jobs.py").write_text("def crunch(spark, frame): return frame\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    return load_mesh(tmp_path / "mesh.yaml").mesh


@pytest.mark.rule("10.job-reads", "10.job-writes", "10.isolation.access")
@pytest.mark.parametrize("key", OF_A_RUN)
def test_10_the_policy_of_all_runs_opens_nothing_of_one_run(tmp_path: Path, key: str) -> None:
    """The session of a run is the union of its own policy and that of all runs: what both had would open other runs."""
    mesh = shop(tmp_path)
    shared = document(run_access(mesh, PLACE, "crunch", f"{BUCKET}-code/*"))["Statement"]
    assert is_allowed(shared, Request("s3:GetObject", f"{BUCKET}/data/books/a"))
    opened = [action for action in ACTIONS if is_allowed(shared, Request(action, f"{BUCKET}/{key}"))]
    listed = is_allowed(shared, Request("s3:ListBucket", BUCKET, {"s3:prefix": key}))
    assert (opened, listed) == ([], False)
    role = document(run_files(mesh, PLACE, "crunch", f"{BUCKET}-code/*"))["Statement"]
    assert is_allowed(role, Request("s3:GetObject", f"{BUCKET}/{key}"))


@pytest.mark.rule("10.isolation.access")
def test_10_s3a_may_look_for_uploads_in_a_bucket_with_folders_of_tenants(tmp_path: Path) -> None:
    mesh = shop(tmp_path)
    shared = document(run_access(mesh, PLACE, "crunch", f"{BUCKET}-code/*"))["Statement"]
    role = document(run_files(mesh, PLACE, "crunch", f"{BUCKET}-code/*"))["Statement"]

    assert is_allowed(shared, Request("s3:ListBucketMultipartUploads", "arn:aws:s3:::lake"))
    assert not is_allowed(shared, Request("s3:PutObject", "arn:aws:s3:::lake/acme/x"))
    assert is_allowed(role, Request("s3:PutObject", "arn:aws:s3:::lake/acme/x"))
