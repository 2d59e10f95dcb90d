"""Checks access entries, tags and prefixes against the rules of AWS."""

from collections.abc import Iterator

from asya_infra.mesh_file.actor_model import AccessEntry
from asya_infra.mesh_file.checks.context import Context, Finding

_KEY_LIMIT, _VALUE_LIMIT = 128, 256


def check(context: Context) -> Iterator[Finding]:
    """Check the access entries of actors, the tags, and the prefixes of x-sink."""
    for name, actor in context.mesh.actors.items():
        for index, entry in enumerate(actor.access):
            for location, message in _entry(entry):
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


def _entry(entry: AccessEntry) -> Iterator[Finding]:
    resources = [key for key in ("bucket", "table", "secret", "statement") if getattr(entry, key) is not None]
    if len(resources) != 1:
        has = f"has {' and '.join(resources)}" if resources else "has no resource"
        yield (), f"{has}; an entry needs exactly one of bucket, table, secret and statement"
        return
    if resources == ["statement"]:
        if entry.read or entry.write:
            yield (), "has a statement, which excludes read and write; remove them"
        return
    if not entry.read and not entry.write:
        yield (), f"grants nothing; add read or write patterns, such as read: {'raw/*' if entry.bucket else 'true'}"
    for key in ("read", "write"):
        for pattern in getattr(entry, key):
            if not pattern or pattern.startswith("/") or ".." in pattern.split("/"):
                yield (key,), f"should be a relative pattern such as raw/*; got {pattern!r}"
            elif entry.secret is not None and pattern != "*":
                yield (key,), f"should be true, because a secret has no parts; got {pattern!r}"
