"""Databases of the Glue Data Catalog: what a job with one may do in it, and nothing in others."""

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import pytest

from asya_infra.addresses import Addresses
from asya_infra.limits.aws_limits import MANAGED_POLICY
from asya_infra.limits.rendering import policy_length
from asya_infra.mesh_file.actor_model import AccessEntry
from asya_infra.mesh_file.sections import read_section
from asya_infra.permissions.access import access_grants, catalog_grants, list_uploads
from asya_infra.permissions.grant import Grant, document
from asya_infra.permissions.needs import secret_grants

PLACE = Addresses(namespace="shop", partition="aws", region="r", account="1", url_suffix="amazonaws.com")
LAKE, DATA = "arn:aws:s3:::lake", "arn:aws:s3:::asya-shop-1-r"
READS = ("GetDatabase", "GetTable", "GetTables", "GetPartition", "GetPartitions", "BatchGetPartition")
WRITES = ("CreateTable", "UpdateTable", "DeleteTable", "BatchCreatePartition", "BatchDeletePartition")
# What no job may do, whatever the mesh file grants.
NEVER = (
    *("CreateDatabase", "UpdateDatabase", "DeleteDatabase", "GetDatabases", "BatchDeleteTable", "SearchTables"),
    *("PutResourcePolicy", "DeleteResourcePolicy", "CreateUserDefinedFunction", "TagResource", "CreateCatalog"),
)


def grants(*entries: dict[str, Any], by_s3a: bool = True) -> list[Grant]:
    access = access_grants([read_section(AccessEntry, entry) for entry in entries], PLACE, by_s3a=by_s3a)
    return [*catalog_grants(PLACE), *access]


def sales(**patterns: Any) -> dict[str, Any]:
    return {"database": "sales", "location": "s3://lake/sales", **patterns}


def allows(given: list[Grant], action: str, resource: str) -> bool:
    return any(
        f"{action}" in grant.actions and any(fnmatchcase(resource, pattern) for pattern in grant.resources)
        for grant in given
    )


def may(given: list[Grant], action: str, database: str, table: str = "") -> bool:
    """Evaluate as Glue does: the action takes permission on the table, the database and the catalog."""
    resources = [PLACE.arn("glue", "catalog"), PLACE.arn("glue", f"database/{database}")]
    resources += [PLACE.arn("glue", f"table/{database}/{table}")] if table else []
    return all(allows(given, f"glue:{action}", resource) for resource in resources)


def test_readers_read_the_tables_of_one_database() -> None:
    given = grants(sales(read=["orders*"]))
    assert all(may(given, action, "sales", "orders_2026") for action in READS)
    assert not any(may(given, action, "sales", "orders_2026") for action in WRITES)
    assert not may(given, "GetTable", "sales", "customers")


def test_writers_read_too() -> None:
    given = grants(sales(write=["orders"]))
    assert all(may(given, action, "sales", "orders") for action in (*READS, *WRITES))
    assert not any(may(given, action, "sales", "orders_2026") for action in (*READS[1:], *WRITES))


@pytest.mark.parametrize("database", ["hr", "sales2", "sale", "default", "global_temp"])
def test_another_database_is_closed(database: str) -> None:
    given = grants(sales(read=["*"], write=["*"]))
    assert not any(may(given, action, database, "people") for action in (*READS, *WRITES))


def test_the_rights_in_two_databases_do_not_mix() -> None:
    given = grants(sales(write=["*"]), {"database": "hr", "location": "s3://lake/hr", "read": ["people"]})
    assert may(given, "GetTable", "hr", "people")
    assert not any(may(given, action, "hr", "people") for action in WRITES)
    assert not may(given, "GetTable", "hr", "salaries")
    assert not allows(given, "s3:PutObject", f"{LAKE}/hr/people/part")
    assert not allows(given, "s3:GetObject", f"{LAKE}/hr/salaries/part")


def test_a_policy_has_room_for_several_databases() -> None:
    """All that fit beside the list of uploads, the catalog and one secret: six that are written, with long names."""
    entries = [
        {
            "database": f"customer_orders_{number}",
            "location": f"s3://company-lake-production/orders/{number}",
            "write": ["*"],
        }
        for number in range(6)
    ]
    place = replace(PLACE, namespace="n" * 20, region="eu-central-1", account="1" * 12)
    access = access_grants([read_section(AccessEntry, entry) for entry in entries], place, by_s3a=True)
    given = [
        list_uploads(place.data.bucket, place),
        *catalog_grants(place),
        *access,
        *secret_grants(["prod/key"], place),
    ]
    assert policy_length(document(given)) <= MANAGED_POLICY.usable


@pytest.mark.parametrize("action", NEVER)
def test_no_job_changes_databases_or_the_catalog(action: str) -> None:
    given = grants(sales(read=["*"], write=["*"]))
    assert not any(f"glue:{action}" in grant.actions for grant in given)
    assert not any("*" in action for grant in given for action in grant.actions)


def test_a_catalog_alone_opens_no_table() -> None:
    given = grants()
    assert may(given, "GetDatabase", "default")
    assert may(given, "GetDatabase", "global_temp")
    assert not may(given, "GetDatabase", "sales")
    assert not any(may(given, action, "default", "people") for action in (*READS, *WRITES))


@pytest.mark.parametrize("key", ["orders", "orders/", "orders/metadata/v1.json", "orders/day=1/part.parquet"])
def test_the_files_of_a_table_are_in_its_folder(key: str) -> None:
    readers, writers = grants(sales(read=["orders"])), grants(sales(write=["orders"]))
    assert allows(readers, "s3:GetObject", f"{LAKE}/sales/{key}")
    assert not allows(readers, "s3:PutObject", f"{LAKE}/sales/{key}")
    for action in ("GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload"):
        assert allows(writers, f"s3:{action}", f"{LAKE}/sales/{key}")


@pytest.mark.parametrize(
    "key", ["sales/customers/part", "sales/orders_2026/part", "hr/orders/part", "sales2/orders/part"]
)
def test_the_files_of_other_tables_are_closed(key: str) -> None:
    given = grants(sales(read=["orders"], write=["orders"]))
    assert not any(allows(given, f"s3:{action}", f"{LAKE}/{key}") for action in ("GetObject", "PutObject"))


def test_all_tables_are_the_whole_folder() -> None:
    given = grants(sales(read=["*"]))
    assert allows(given, "s3:GetObject", f"{LAKE}/sales/orders/part")
    assert not allows(given, "s3:GetObject", f"{LAKE}/hr/people/part")


@pytest.mark.parametrize("location", ["tables/sales", "tables/sales/"])
def test_a_location_may_be_below_the_data_of_the_mesh(location: str) -> None:
    given = grants({"database": "sales", "location": location, "write": ["orders"]})
    assert allows(given, "s3:PutObject", f"{DATA}/data/tables/sales/orders/part")
    assert not allows(given, "s3:PutObject", f"{DATA}/data/tables/hr/orders/part")


def test_a_location_may_be_a_bucket() -> None:
    given = grants({"database": "sales", "location": "s3://lake", "read": ["orders"]})
    assert allows(given, "s3:GetObject", f"{LAKE}/orders/part")
    assert not allows(given, "s3:GetObject", f"{LAKE}/people/part")


def test_a_light_actor_writes_files_that_it_does_not_read() -> None:
    given = grants(sales(write=["orders"]), by_s3a=False)
    assert allows(given, "s3:PutObject", f"{LAKE}/sales/orders/part")
    assert not allows(given, "s3:GetObject", f"{LAKE}/sales/orders/part")
