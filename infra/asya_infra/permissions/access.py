"""An actor's `access` in the mesh file, as permissions."""

from collections.abc import Iterable, Sequence

from asya_infra.addresses import Addresses, Place
from asya_infra.mesh_file.actor_model import AccessEntry
from asya_infra.permissions.grant import Grant

_WHY = "The mesh file grants this actor what these patterns cover."
_READ_OBJECTS = ("s3:GetObject",)
# Spark and others write by parts and clear away what a failed attempt left.
_WRITE_OBJECTS = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
_READ_ITEMS = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query")
_WRITE_ITEMS = ("dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem")


def access_grants(entries: Iterable[AccessEntry], addresses: Addresses) -> list[Grant]:
    """What a list of entries allows."""
    return [grant for entry in entries for grant in _entry(entry, addresses)]


def folder_grants(place: Place, read: Sequence[str], write: Sequence[str], addresses: Addresses) -> list[Grant]:
    """Reading and writing below a prefix; patterns are relative to it, and only what they cover can be listed."""
    grants = []
    for patterns, actions in ((read, _READ_OBJECTS), (write, _WRITE_OBJECTS)):
        if patterns:
            objects = [addresses.objects_arn(place.bucket, place.prefix + pattern) for pattern in patterns]
            grants.append(Grant(actions, tuple(objects), why=_WHY))
    prefixes = sorted({prefix for pattern in (*read, *write) for prefix in _listed(place.prefix + pattern)})
    condition = {"StringLike": {"s3:prefix": prefixes}}
    return [*grants, Grant(("s3:ListBucket",), (addresses.bucket_arn(place.bucket),), conditions=condition)]


def _listed(pattern: str) -> set[str]:
    """What may be asked for to see the objects of a pattern: `raw/*` is also the folder `raw` with and without slash."""
    return {pattern, pattern.removesuffix("*"), pattern.removesuffix("/*")} - {""}


def _entry(entry: AccessEntry, addresses: Addresses) -> list[Grant]:
    if entry.bucket is not None:
        own = {"data": addresses.data, "results": addresses.results}
        return folder_grants(own.get(entry.bucket, Place(entry.bucket, "")), entry.read, entry.write, addresses)
    if entry.table is not None:
        return _table(entry, addresses.arn("dynamodb", f"table/{entry.table}"))
    if entry.secret is not None:
        secret = addresses.arn("secretsmanager", f"secret:{entry.secret}-??????")
        read = [Grant(("secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue"), (secret,), why=_WHY)]
        write = [Grant(("secretsmanager:PutSecretValue",), (secret,), why=_WHY)]
        return [*(read if entry.read else []), *(write if entry.write else [])]
    if entry.statement is not None:
        raw = entry.statement
        return [Grant(raw.Action, raw.Resource, why=_WHY, conditions=raw.Condition, effect=raw.Effect)]
    return []


def _table(entry: AccessEntry, arn: str) -> list[Grant]:
    grants = []
    for patterns, actions in ((entry.read, _READ_ITEMS), (entry.write, _WRITE_ITEMS)):
        if patterns:
            some = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(patterns)}}
            resources = (arn, f"{arn}/index/*") if actions is _READ_ITEMS else (arn,)
            grants.append(Grant(actions, resources, why=_WHY, conditions={} if "*" in patterns else some))
    return grants
