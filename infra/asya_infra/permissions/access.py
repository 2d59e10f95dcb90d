"""Permissions from an actor's `access` in the mesh file."""

from collections.abc import Iterable, Sequence

from asya_infra.addresses import Addresses, S3Prefix
from asya_infra.mesh_file.actor_model import AccessEntry
from asya_infra.permissions.grant import Grant

_REASON = "The mesh file grants this actor the resources that the patterns match."
_READ_OBJECTS = ("s3:GetObject",)
# Spark uses multipart uploads and deletes the files of failed attempts.
_WRITE_OBJECTS = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
_READ_ITEMS = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query")
_WRITE_ITEMS = ("dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem")


def access_grants(entries: Iterable[AccessEntry], addresses: Addresses) -> list[Grant]:
    """Return the permissions of these entries."""
    return [grant for entry in entries for grant in _entry(entry, addresses)]


def folder_grants(place: S3Prefix, read: Sequence[str], write: Sequence[str], addresses: Addresses) -> list[Grant]:
    """Return the permissions to read, write and list objects below a prefix.

    Patterns are relative to the prefix. Only keys that match a pattern can be listed.
    """
    grants = []
    for patterns, actions in ((read, _READ_OBJECTS), (write, _WRITE_OBJECTS)):
        if patterns:
            objects = [addresses.objects_arn(place.bucket, place.prefix + pattern) for pattern in patterns]
            grants.append(Grant(actions, tuple(objects), reason=_REASON))
    prefixes = sorted({prefix for pattern in (*read, *write) for prefix in _list_prefixes(place.prefix + pattern)})
    condition = {"StringLike": {"s3:prefix": prefixes}}
    return [*grants, Grant(("s3:ListBucket",), (addresses.bucket_arn(place.bucket),), conditions=condition)]


def _list_prefixes(pattern: str) -> set[str]:
    """Return the list prefixes that a pattern allows: for `raw/*` also the folder, as `raw/` and as `raw`."""
    return {pattern, pattern.removesuffix("*"), pattern.removesuffix("/*")} - {""}


def _entry(entry: AccessEntry, addresses: Addresses) -> list[Grant]:
    if entry.bucket is not None:
        own = {"data": addresses.data, "results": addresses.results}
        return folder_grants(own.get(entry.bucket, S3Prefix(entry.bucket, "")), entry.read, entry.write, addresses)
    if entry.table is not None:
        return _table(entry, addresses.arn("dynamodb", f"table/{entry.table}"))
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
            condition = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(patterns)}}
            resources = (arn, f"{arn}/index/*") if actions is _READ_ITEMS else (arn,)
            grants.append(Grant(actions, resources, reason=_REASON, conditions={} if "*" in patterns else condition))
    return grants
