"""Permissions for the Glue Data Catalog: what each job with a catalog needs, and the databases of `access`.

An action on a table takes permission on the table, its database and the catalog, all three:
https://docs.aws.amazon.com/glue/latest/dg/glue-specifying-resource-arns.html
So a statement may name the catalog and several databases, and grants nothing in others. No statement has actions that create,
change or delete a database.
"""

from collections.abc import Collection, Sequence

from asya.protocol.s3_prefix import S3Prefix
from asya_infra.addresses import Addresses
from asya_infra.mesh_file.actor_model import AccessEntry
from asya_infra.permissions.grant import Grant

_REASON = "The mesh file grants this actor the tables that the patterns match."
_READ = tuple(
    f"glue:{action}"
    for action in ("BatchGetPartition", "GetDatabase", "GetPartition", "GetPartitions", "GetTable", "GetTables")
)
# Spark replaces a table (`mode("overwrite")`) by deleting and creating it; its files can be deleted in any case.
_WRITE = tuple(
    f"glue:{action}"
    for action in (
        *("BatchCreatePartition", "BatchDeletePartition", "BatchUpdatePartition"),
        *("CreatePartition", "CreateTable", "DeletePartition", "DeleteTable", "UpdatePartition", "UpdateTable"),
    )
)
# The client of the catalog looks for the database `default` when it starts, and Spark whether one has the name of the temporary
# views of all sessions. A function that no session has is looked up in `default`.
_DEFAULT, _GLOBAL_VIEWS = "default", "global_temp"


def catalog_grants(addresses: Addresses) -> list[Grant]:
    """Allow what Spark asks of the catalog before any table: no table and no other database."""
    catalog, default = addresses.arn("glue", "catalog"), addresses.arn("glue", f"database/{_DEFAULT}")
    functions = addresses.arn("glue", f"userDefinedFunction/{_DEFAULT}/*")
    return [
        Grant(("glue:GetDatabase",), (catalog, default, addresses.arn("glue", f"database/{_GLOBAL_VIEWS}"))),
        Grant(
            ("glue:GetUserDefinedFunction", "glue:GetUserDefinedFunctions"),
            (catalog, default, functions),
            reason="Spark looks up functions by the names that queries have.",
        ),
    ]


def table_grants(entries: Sequence[AccessEntry], addresses: Addresses) -> list[Grant]:
    """Allow reading and writing the tables of databases in the catalog. Those that are written are read too.

    One statement for all databases that are read, and one for all that are written: a policy has 6,144 characters.
    """
    read = [name for entry in entries for name in _tables(entry, set(entry.read) - set(entry.write))]
    written = [name for entry in entries for name in _tables(entry, set(entry.write))]
    return [
        Grant(actions, tuple(addresses.arn("glue", each) for each in ("catalog", *names)), reason=_REASON)
        for actions, names in ((_READ, read), ((*_READ, *_WRITE), written))
        if names
    ]


def _tables(entry: AccessEntry, patterns: Collection[str]) -> list[str]:
    tables = [f"table/{entry.database}/{pattern}" for pattern in sorted(patterns)]
    return [f"database/{entry.database}", *tables] if tables else []


def files_of(entry: AccessEntry, addresses: Addresses) -> tuple[S3Prefix, list[str], list[str]]:
    """Return the place of a database's files, and the patterns of the keys that are read and written.

    Each table has a folder with its name, where Spark and Iceberg put it by default.
    """
    location = f"{(entry.location or '').rstrip('/')}/"
    data = addresses.data
    place = S3Prefix.from_uri(location) if "://" in location else S3Prefix(data.bucket, data.prefix + location)
    return place, [_folder(pattern) for pattern in entry.read], [_folder(pattern) for pattern in entry.write]


def _folder(pattern: str) -> str:
    return pattern if pattern == "*" else f"{pattern}/*"
