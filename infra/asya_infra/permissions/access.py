"""Permissions from an actor's `access` in the mesh file, with those for the Glue Data Catalog."""

from collections.abc import Collection, Iterable, Sequence

from asya.heavy.tenant_access import TENANT, is_of_tenant, with_folder
from asya.protocol.keys import S3Prefix
from asya_infra.addresses import Addresses
from asya_infra.mesh_file.actor_model import AccessEntry
from asya_infra.permissions.grant import Grant, of_leading_keys

_TABLES_REASON = "The mesh file grants this actor the tables that the patterns match."
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
        Grant(actions, tuple(addresses.arn("glue", each) for each in ("catalog", *names)), reason=_TABLES_REASON)
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


_REASON = "The mesh file grants this actor the resources that the patterns match."
_READ_OBJECTS = ("s3:GetObject",)
# A handler's SDK uploads large objects in parts.
_WRITE_OBJECTS = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
# S3A sends HEAD to the folder and to each file that it writes, reads the files of its committers, and deletes those of failed
# attempts. Hadoop's documentation: S3A supports read-only and full access, nothing between.
_WRITE_OBJECTS_BY_S3A = ("s3:GetObject", *_WRITE_OBJECTS)
_READ_ITEMS = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query")
_WRITE_ITEMS = ("dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem")


def access_grants(entries: Iterable[AccessEntry], addresses: Addresses, *, by_s3a: bool = False) -> list[Grant]:
    """Return the permissions of these entries.

    Args:
        by_s3a: True for job runs, which reach S3 through Hadoop's S3A: writing includes reading.
    """
    entries = list(entries)
    databases = [entry for entry in entries if entry.database is not None]
    grants = [grant for entry in entries for grant in _entry(entry, addresses, by_s3a=by_s3a)]
    return [*grants, *table_grants(databases, addresses)]


def folder_grants(
    place: S3Prefix, read: Sequence[str], write: Sequence[str], addresses: Addresses, *, by_s3a: bool = False
) -> list[Grant]:
    """Return the permissions to read, write and list objects below a prefix.

    Patterns are relative to the prefix. Only keys that match a pattern can be listed. A pattern `clean/*` includes the key
    `clean`: S3A, pyarrow and others ask whether the folder is an object before they list it, and take a 403 for an error.
    """
    if by_s3a:
        read = [pattern for pattern in read if pattern not in write]
    grants = []
    for patterns, actions in ((read, _READ_OBJECTS), (write, _WRITE_OBJECTS_BY_S3A if by_s3a else _WRITE_OBJECTS)):
        if patterns:
            keys = [key for pattern in patterns for key in with_folder(place.prefix + pattern)]
            objects = [addresses.objects_arn(place.bucket, key) for key in keys]
            grants.append(Grant(actions, tuple(objects), reason=_REASON))
    # A missing key is 404 for those who may list it, else 403.
    prefixes = sorted({prefix for pattern in (*read, *write) for prefix in with_folder(place.prefix + pattern)})
    condition = {"StringLike": {"s3:prefix": prefixes}}
    bucket = addresses.bucket_arn(place.bucket)
    grants.append(Grant(("s3:ListBucket",), (bucket,), conditions=condition))
    if write and by_s3a:
        grants.append(list_uploads(place.bucket, addresses))
    return grants


def tenant_grants(entries: Iterable[AccessEntry], addresses: Addresses) -> list[Grant]:
    """Return what the role of job runs has for the folders of tenants: those of all.

    The session policy of a run names its tenant.
    """
    grants = []
    for entry in entries:
        if entry.bucket is not None and is_of_tenant((*entry.read, *entry.write)):
            read, write = (
                [each.replace(TENANT, "*") for each in patterns if TENANT in each]
                for patterns in (entry.read, entry.write)
            )
            grants += folder_grants(_place(entry.bucket, addresses), read, write, addresses, by_s3a=True)
    return grants


def list_uploads(bucket: str, addresses: Addresses) -> Grant:
    """Allow the list of unfinished uploads, for which S3A's committers ask. The action has no condition for prefixes."""
    return Grant(("s3:ListBucketMultipartUploads",), (addresses.bucket_arn(bucket),))


def _place(bucket: str, addresses: Addresses) -> S3Prefix:
    own = {"data": addresses.data, "results": addresses.results}
    return own.get(bucket, S3Prefix(bucket, ""))


def _entry(entry: AccessEntry, addresses: Addresses, *, by_s3a: bool) -> list[Grant]:
    if entry.bucket is not None:
        place = _place(entry.bucket, addresses)
        readable, writable = (
            [each for each in patterns if TENANT not in each] for patterns in (entry.read, entry.write)
        )
        grants: list[Grant] = []
        if readable or writable:
            grants += folder_grants(place, readable, writable, addresses, by_s3a=by_s3a)
        return grants if writable or not entry.write else [*grants, list_uploads(place.bucket, addresses)]
    if entry.table is not None:
        return _table(entry, addresses.arn("dynamodb", f"table/{entry.table}"))
    if entry.database is not None:
        place, read_keys, write_keys = files_of(entry, addresses)
        return folder_grants(place, read_keys, write_keys, addresses, by_s3a=by_s3a)
    if entry.secret is not None:
        secret = addresses.arn("secretsmanager", f"secret:{entry.secret}-??????")
        read = [Grant(("secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue"), (secret,), reason=_REASON)]
        write = [Grant(("secretsmanager:PutSecretValue",), (secret,), reason=_REASON)]
        return [*(read if entry.read else []), *(write if entry.write else [])]
    if entry.statement is not None:
        raw = entry.statement
        return [Grant(raw.Action, raw.Resource, reason=_REASON, conditions=raw.Condition, effect=raw.Effect)]
    return []


def _table(entry: AccessEntry, arn: str) -> list[Grant]:
    grants = []
    for patterns, actions in ((entry.read, _READ_ITEMS), (entry.write, _WRITE_ITEMS)):
        if patterns:
            condition = of_leading_keys(patterns)
            resources = (arn, f"{arn}/index/*") if actions is _READ_ITEMS else (arn,)
            grants.append(Grant(actions, resources, reason=_REASON, conditions={} if "*" in patterns else condition))
    return grants
