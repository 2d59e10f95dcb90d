"""A mesh whose jobs have the Glue Data Catalog: the policies of their runs."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

import pytest

from asya_infra.limits.aws_limits import MANAGED_POLICY
from asya_infra.limits.rendering import policy_length
from tests.infra.conftest import SynthesizedMesh, synthesize

MESH = """
namespace: lake
jobs: jobs
defaults: {can_send_to: []}
spark: {catalog: glue, tables: iceberg}
actors:
  load-orders:
    spark: {job: lake.load}
    access:
      - {database: sales, location: "s3://lake/sales", write: [orders]}
      - {database: hr, location: tables/hr, read: [people_*]}
  count-words:
    spark: {job: lake.load, catalog: none, tables: parquet}
"""
ACCOUNT = "<Region>:<AccountId>"
DELETIONS = ("glue:DeleteDatabase", "glue:UpdateDatabase", "glue:CreateDatabase")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "jobs").mkdir()
    (folder / "jobs/lake.py").write_text("def load(spark, payload): return payload\n")
    (folder / "functions/handlers").mkdir(parents=True)
    (folder / "mesh.yaml").write_text(MESH)
    return synthesize(folder / "out", mesh=str(folder / "mesh.yaml"))


def statements(mesh: SynthesizedMesh, actor: str) -> list[dict[str, Any]]:
    """The statements of the access policy, which the role and the session of each run have."""
    (policy,) = (
        policy["PolicyDocument"]
        for policy in mesh.resources("AWS::IAM::ManagedPolicy")
        if policy["Description"] == f"What job runs of {actor} may reach beside their own files"
    )
    assert policy_length(policy) <= MANAGED_POLICY.usable
    return list(policy["Statement"])


def as_list(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def allowed(mesh: SynthesizedMesh, actor: str, action: str, *resources: str) -> bool:
    """Whether a run may do something that needs permission on all these resources."""
    return all(
        any(
            action in as_list(statement["Action"])
            and any(fnmatchcase(resource, pattern) for pattern in as_list(statement["Resource"]))
            for statement in statements(mesh, actor)
        )
        for resource in resources
    )


def glue(*names: str) -> tuple[str, ...]:
    return tuple(f"arn:<Partition>:glue:{ACCOUNT}:{name}" for name in ("catalog", *names))


def test_a_job_writes_its_tables(lake: SynthesizedMesh) -> None:
    table = glue("database/sales", "table/sales/orders")
    for action in ("glue:GetTable", "glue:UpdateTable", "glue:CreateTable"):
        assert allowed(lake, "load-orders", action, *table)
    assert allowed(lake, "load-orders", "s3:PutObject", "arn:<Partition>:s3:::lake/sales/orders/data/part.parquet")


def test_a_job_reads_tables_of_another_database(lake: SynthesizedMesh) -> None:
    table = glue("database/hr", "table/hr/people_2026")
    bucket = "asya-lake-<AccountId>-<Region>"
    assert allowed(lake, "load-orders", "glue:GetTable", *table)
    assert not allowed(lake, "load-orders", "glue:UpdateTable", *table)
    assert not allowed(lake, "load-orders", "glue:GetTable", *glue("database/hr", "table/hr/salaries"))
    assert allowed(
        lake, "load-orders", "s3:GetObject", f"arn:<Partition>:s3:::{bucket}/data/tables/hr/people_2026/part"
    )
    assert not allowed(
        lake, "load-orders", "s3:PutObject", f"arn:<Partition>:s3:::{bucket}/data/tables/hr/people_2026/part"
    )


@pytest.mark.parametrize("database", ["sales", "hr", "default", "finance"])
def test_no_job_creates_changes_or_drops_a_database(lake: SynthesizedMesh, database: str) -> None:
    for action in DELETIONS:
        assert not allowed(lake, "load-orders", action, f"arn:<Partition>:glue:{ACCOUNT}:database/{database}")
        assert not allowed(lake, "load-orders", action, f"arn:<Partition>:glue:{ACCOUNT}:catalog")


def test_a_job_without_a_catalog_has_no_permission_for_one(lake: SynthesizedMesh) -> None:
    assert not any(
        action.startswith("glue:")
        for statement in statements(lake, "count-words")
        for action in as_list(statement["Action"])
    )
