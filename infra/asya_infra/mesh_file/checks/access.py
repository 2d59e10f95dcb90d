"""Checks who may do what: the access and the secrets of actors, and the callers of the gateway."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from asya.gateway.access import operator_claim
from asya.heavy.tenant_access import TENANT
from asya.protocol import names
from asya.protocol.mesh_table import FAIR_BY_OWNER
from asya.runtime.secret_values import PARAMETER_PREFIX
from asya_infra.limits.aws_limits import TAGS
from asya_infra.mesh_file.actor_model import AccessEntry, ActorSection
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.source import did_you_mean

_KINDS = ("bucket", "table", "database", "secret", "statement")
# No wildcard: it would match other databases, or other folders than the one that is named.
_DATABASE = re.compile(r"[a-z0-9_-]{1,255}")
_TABLES = re.compile(r"[a-z0-9_*?-]{1,255}")
_LOCATION = re.compile(r"(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/|$))?([A-Za-z0-9!_.'()=-]+/)*[A-Za-z0-9!_.'()=-]*")
_KEY_LIMIT, _VALUE_LIMIT = 128, 256
# https://docs.aws.amazon.com/IAM/latest/APIReference/API_Tag.html
_TAG = re.compile(r"[\w .:/=+@-]*")
# Resources have the namespace and their actor, and the feed of the dispatcher a mark while `asya deploy` has paused it.
_TAG_LIMIT = TAGS.usable - 3


def check_access(context: Context) -> Iterator[Finding]:
    """Check the access entries of actors, the tags, and the prefixes of x-sink."""
    for name, actor in context.mesh.actors.items():
        for index, entry in enumerate(actor.access):
            for location, message in _entry(entry, actor):
                yield ("actors", name, "access", index, *location), message
            for location, message in _of_tenant(entry, actor, context.mesh):
                yield ("actors", name, "access", index, *location), message
    if len(context.mesh.tags) > _TAG_LIMIT:
        yield (
            ("tags",),
            f"has {len(context.mesh.tags)} tags; {_TAG_LIMIT} at most, because a resource has {TAGS.usable} with those of the mesh",
        )
    is_heavy = any(actor.spark is not None for actor in context.mesh.actors.values())
    known: dict[str, str] = {}
    for key, value in context.mesh.tags.items():
        if (problem := _tag_problem(key, value, is_heavy=is_heavy)) is not None:
            yield ("tags", key), problem
        elif (other := known.setdefault(key.lower(), key)) != key:
            yield ("tags", key), f"is the same to IAM as {other}; remove one of them"
    for key in ("succeeded", "failed"):
        prefix: str | None = getattr(context.mesh.sink.prefixes, key)
        if prefix is not None and (not prefix.strip("/") or prefix.startswith("/") or ".." in prefix.split("/")):
            yield ("sink", "prefixes", key), f"should be a relative prefix such as {key}/; got {prefix!r}"


def _tag_problem(key: str, value: str, *, is_heavy: bool) -> str | None:
    for prefix, owner in (("aws:", "AWS"), ("asya:", "the mesh")):
        if key.lower().startswith(prefix):
            return f"the prefix {prefix} is reserved by {owner}; rename the tag"
    if not key or len(key) > _KEY_LIMIT or len(value) > _VALUE_LIMIT:
        return f"should have a key of 1 to {_KEY_LIMIT} characters and a value of at most {_VALUE_LIMIT}"
    for text in (key, value):
        if not _TAG.fullmatch(text):
            return f"should have only letters, digits, spaces and _ . : / = + - @; got {text!r}"
        if is_heavy and not text.isascii():
            return (
                "should have only ASCII letters and digits, spaces and _ . : / = + - @, because EMR Serverless takes no "
                f"others; got {text!r}"
            )
    return None


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


def _of_tenant(entry: AccessEntry, actor: ActorSection, mesh: MeshFile) -> Iterator[Finding]:
    """Check the folders of tenants (`protocol §10.isolation.access`): no pattern may match the keys of two tenants."""
    named = [
        key for key in ("bucket", "table", "database", "secret", "location") if TENANT in (getattr(entry, key) or "")
    ]
    for key in named:
        yield (key,), f"cannot contain {TENANT}, which is a folder in a pattern of a bucket, such as raw/{TENANT}/*"
    for key in ("read", "write"):
        for pattern in getattr(entry, key):
            if TENANT not in pattern:
                continue
            before, _, after = pattern.partition(TENANT)
            if entry.bucket is None:
                yield (
                    (key,),
                    f"cannot contain {TENANT}, which is a folder in a pattern of a bucket, such as raw/{TENANT}/*",
                )
            elif (
                TENANT in after
                or before[-1:] not in ("", "/")
                or after[:1] not in ("", "/")
                or {"*", "?"} & set(before)
            ):
                yield (
                    (key,),
                    f"should have {TENANT} once, as a whole folder before any wildcard, such as raw/{TENANT}/*, so that no "
                    f"other tenant's keys match; got {pattern!r}",
                )
            elif actor.spark is None or actor.spark.isolation == "none" or actor.fair_by != FAIR_BY_OWNER:
                yield (
                    (key,),
                    f"has {TENANT}, which is for a heavy actor with spark: {{isolation: tenant}} or envelope, and "
                    f"fair_by: {FAIR_BY_OWNER}: only its runs have one tenant",
                )
            elif mesh.gateway.jwt is None or mesh.gateway.jwt.tenant is None:
                yield (key,), f"has {TENANT}, which is the value of a claim; name the claim as gateway.jwt.tenant"


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


# Without a VPC a job run reaches S3, Secrets Manager and a few more services, but not Systems Manager:
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/considerations.html
_UNREACHABLE = (
    "job runs cannot reach Parameter Store, because the application of the mesh is in no VPC; store the value in Secrets "
    "Manager, or put the application in a VPC (spark.application.vpc)"
)


def check_secrets(context: Context) -> Iterator[Finding]:
    """Check the secrets of all actors."""
    application = context.mesh.spark.application
    is_in_vpc = application.id is not None or application.vpc is not None or context.mesh.vpc is not None
    for name, actor in context.mesh.actors.items():
        place = ("actors", name, "secrets")
        if actor.secrets and actor.handler is None and actor.spark is None:
            yield place, "needs a handler or a job, because the values are for its code"
        if actor.spark is not None and not is_in_vpc:
            for variable, reference in actor.secrets.items():
                if reference.startswith(PARAMETER_PREFIX):
                    yield (*place, variable), _UNREACHABLE
        for variable in sorted(actor.secrets.keys() & actor.env.keys()):
            yield (*place, variable), "is in env too; keep one of them"


# Tests run an issuer without TLS on the local cloud. API Gateway requires TLS.
_LOOPBACK = ("127.0.0.1", "localhost")


def check_callers(context: Context) -> Iterator[Finding]:
    """Check the issuer and audiences of tokens, the operators, and the actors where callers may start tasks."""
    jwt = context.mesh.gateway.jwt
    if jwt is not None:
        if (problem := _issuer_problem(jwt.issuer)) is not None:
            yield ("gateway", "jwt", "issuer"), problem
        if jwt.tenant is not None and FAIR_BY_OWNER not in (each.fair_by for each in context.mesh.actors.values()):
            yield ("gateway", "jwt", "tenant"), "is for actors with fair_by: owner, and the mesh has none"
        for number, audience in enumerate(jwt.audience):
            if not audience.strip():
                yield ("gateway", "jwt", "audience", number), "should not be empty"
    for number, operator in enumerate(context.mesh.operators):
        if operator_claim(operator) is not None:
            if jwt is None:
                yield (
                    ("operators", number),
                    f"{operator!r} is a claim of a token, but the mesh accepts no tokens; set gateway.jwt",
                )
        elif not operator.startswith(("arn:", "*")):
            yield (
                ("operators", number),
                f"should be an IAM ARN or a claim of a token such as name=value; got {operator!r}",
            )
    yield from _starts(context)


def _starts(context: Context) -> Iterator[Finding]:
    starts, actors = context.mesh.gateway.starts, context.mesh.actors
    if starts is None:
        return
    if not context.mesh.operators:
        yield (
            ("gateway", "starts"),
            "limits callers who are no operators, but without operators every signed caller is one",
        )
    startable = [name for name in actors if not names.is_reserved(name)]
    for number, actor in enumerate(starts):
        if actor not in startable:
            yield (
                ("gateway", "starts", number),
                f"there is no actor {actor!r} to start a task at{did_you_mean(actor, startable)}",
            )


def _issuer_problem(issuer: str) -> str | None:
    try:
        parts = urlsplit(issuer)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.query or parts.fragment or "#" in issuer or any(each.isspace() for each in issuer):
        return f"should be a URL such as https://login.example.com/; got {issuer!r}"
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOOPBACK):
        return f"should start with https:// (http:// only for the local cloud, at {_LOOPBACK[0]}); got {issuer!r}"
    return None
