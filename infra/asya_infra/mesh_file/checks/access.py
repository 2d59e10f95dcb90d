"""Checks access entries, tags and prefixes against the rules of AWS."""

import re
from collections.abc import Iterator

from asya_infra.mesh_file.actor_model import AccessEntry, ActorSection
from asya_infra.mesh_file.checks.context import Context, Finding

_KINDS = ("bucket", "table", "database", "secret", "statement")
# No wildcard: it would match other databases, or other folders than the one that is named.
_DATABASE = re.compile(r"[a-z0-9_-]{1,255}")
_TABLES = re.compile(r"[a-z0-9_*?-]{1,255}")
_LOCATION = re.compile(r"(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/|$))?([A-Za-z0-9!_.'()=-]+/)*[A-Za-z0-9!_.'()=-]*")
_KEY_LIMIT, _VALUE_LIMIT = 128, 256


def check_access(context: Context) -> Iterator[Finding]:
    """Check the access entries of actors, the tags, and the prefixes of x-sink."""
    for name, actor in context.mesh.actors.items():
        for index, entry in enumerate(actor.access):
            for location, message in _entry(entry, actor):
                yield ("actors", name, "access", index, *location), message
    for key, value in context.mesh.tags.items():
        if key.lower().startswith("aws:"):
            yield ("tags", key), "the prefix aws: is reserved by AWS; rename the tag"
        elif not key or len(key) > _KEY_LIMIT or len(value) > _VALUE_LIMIT:
            yield (
                ("tags", key),
                f"should have a key of 1 to {_KEY_LIMIT} characters and a value of at most {_VALUE_LIMIT}",
            )
    for key in ("succeeded", "failed"):
        prefix: str | None = getattr(context.mesh.sink.prefixes, key)
        if prefix is not None and (not prefix.strip("/") or prefix.startswith("/") or ".." in prefix.split("/")):
            yield ("sink", "prefixes", key), f"should be a relative prefix such as {key}/; got {prefix!r}"


def _entry(entry: AccessEntry, actor: ActorSection) -> Iterator[Finding]:
    resources = [key for key in _KINDS if getattr(entry, key) is not None]
    if len(resources) != 1:
        has = f"has {' and '.join(resources)}" if resources else "has no resource"
        yield (), f"{has}; an entry needs exactly one of bucket, table, database, secret and statement"
        return
    if entry.location is not None and entry.database is None:
        yield ("location",), "is for a database; remove it, or name the database"
    if resources == ["statement"]:
        if entry.read or entry.write:
            yield (), "has a statement, which excludes read and write; remove them"
        return
    if entry.database is not None:
        yield from _database(entry, entry.database, actor)
    if not entry.read and not entry.write:
        yield (), f"grants nothing; add read or write patterns, such as read: {'raw/*' if entry.bucket else 'true'}"
    for key in ("read", "write"):
        for pattern in getattr(entry, key):
            if not pattern or pattern.startswith("/") or ".." in pattern.split("/"):
                yield (key,), f"should be a relative pattern such as raw/*; got {pattern!r}"
            elif entry.secret is not None and pattern != "*":
                yield (key,), f"should be true, because a secret has no parts; got {pattern!r}"
            elif entry.database is not None and not _TABLES.fullmatch(pattern):
                yield (key,), f"should be a pattern of table names in lower case such as orders_*; got {pattern!r}"


def _database(entry: AccessEntry, name: str, actor: ActorSection) -> Iterator[Finding]:
    if not _DATABASE.fullmatch(name):
        yield (
            ("database",),
            f"should be the name of one database, of lower-case letters, digits, _ and -; got {name!r}",
        )
    if actor.spark is not None and actor.spark.catalog != "glue":
        yield (
            ("database",),
            "is in a catalog that the job does not have; set spark: {catalog: glue} of the mesh or of the actor",
        )
    location = entry.location
    if location is None:
        yield (
            (),
            "has no location; name the folder that has the folders of the tables, such as "
            f"location: s3://my-lake/{name}: their files are read and written there",
        )
    elif not _LOCATION.fullmatch(location) or {".", ".."} & set(location.split("/")):
        yield (
            ("location",),
            f"should be a folder without wildcards, such as s3://my-lake/{name} or, below the data of the mesh, "
            f"tables/{name}; got {location!r}",
        )
