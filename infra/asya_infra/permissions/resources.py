"""The resources that needs name (`asya.needs.Resource`): their ARNs, the conditions of a call, and why a wildcard stays."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from asya.capabilities.pauses.aws.notices import source_of
from asya.needs import Calls, Resource
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.registry import own_functions
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.groups import heavy_actors
from asya_infra.permissions.secrets import secret_grants

_API_HOST = re.compile(r"([a-z0-9]+)\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
_MOST_IN_BOTH_FORMS = 120


@dataclass(frozen=True, kw_only=True)
class Place:
    """A mesh with the addresses of its resources.

    Attributes:
        application: the id of the Spark application; None where no need names it.
        key: the ARN of the key that signs tokens; None where no need names it.
    """

    addresses: Addresses
    table: MeshTable
    application: str | None = None
    key: str | None = None


def call_grants(need: Calls, place: Place) -> list[Grant]:
    """Return the permissions for calls on a named resource; none if the mesh has no such resource."""
    if need.on is Resource.WEBHOOK_KEYS:
        return secret_grants((webhook.secret for webhook in place.table.webhooks.values()), place.addresses)
    found = _FOUND[need.on](place)
    return [Grant(need.calls, found.arns, reason=found.reason, conditions=found.conditions)] if found.arns else []


def api_of(host: str) -> tuple[str, str] | None:
    """Return the id and the region of the API at a host; None if the host is not API Gateway's own."""
    match = _API_HOST.fullmatch(host)
    return (match[1], match[2]) if match else None


@dataclass(frozen=True)
class _Found:
    """What a mesh has of a resource."""

    arns: tuple[str, ...]
    reason: str = ""
    conditions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def _token_key(place: Place) -> _Found:
    assert place.key is not None, "the stack of this function has no key"
    return _Found((place.key,))


def _event_bus(place: Place) -> _Found:
    # AWS always sets this key; the local cloud may not.
    own = {"StringEqualsIfExists": {"events:source": source_of(place.addresses.namespace)}}
    return _Found((place.addresses.arn("events", "event-bus/default"),), conditions=own)


def _application(place: Place) -> _Found:
    assert place.application is not None, "the stack of this function has no application"
    return _Found((place.addresses.application_arn(place.application),))


def _job_runs(place: Place) -> _Found:
    [application] = _application(place).arns
    return _Found((f"{application}/jobruns/*",), "Job runs of this mesh's application; the service names them.")


def _job_roles(place: Place) -> _Found:
    roles = tuple(map(place.addresses.job_role_arn, heavy_actors(place.table)))
    return _Found(roles, conditions={"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}})


def _log_groups(place: Place) -> _Found:
    """Find the log groups of actors and system functions, never a pattern of names: those of a stage begin alike."""
    own, addresses = (each.name for each in own_functions(place.table)), place.addresses
    functions = (*place.table.actors, *names.SYSTEM_FUNCTIONS, *own)
    groups = [addresses.arn("logs", f"log-group:{addresses.log_group_name(each)}") for each in functions]
    # AWS checks the form with the log streams, the local cloud the one without. A large mesh has no room for both.
    forms = ("", ":*") if len(groups) <= _MOST_IN_BOTH_FORMS else (":*",)
    arns = tuple(group + form for form in forms for group in groups)
    return _Found(arns, "Log streams of a function's log group; Lambda names them.")


def _functions(place: Place) -> _Found:
    pattern = f"function:{names.function_name(place.addresses.namespace, '*')}"
    reason = (
        "A role has no room for the names of 300 functions beside those of their queues, and the answer is a number."
    )
    return _Found((place.addresses.arn("lambda", pattern),), reason)


def _foreign_gateways(place: Place) -> _Found:
    """Find the call for reports of these gateways, and no other call; APIs of other accounts take no foreign roles."""
    addresses, hosts = place.addresses, place.table.gateway.foreign_gateways
    apis = sorted({api for host in hosts if (api := api_of(host)) is not None})
    return _Found(
        tuple(
            f"arn:{addresses.partition}:execute-api:{region}:{addresses.account}:{api}/$default/POST/api/v1/mesh/events"
            for api, region in apis
        )
    )


_FOUND: Mapping[Resource, Callable[[Place], _Found]] = MappingProxyType(
    {
        Resource.TOKEN_KEY: _token_key,
        Resource.EVENT_BUS: _event_bus,
        Resource.APPLICATION: _application,
        Resource.JOB_RUNS: _job_runs,
        Resource.JOB_ROLES: _job_roles,
        Resource.LOG_GROUPS: _log_groups,
        Resource.FUNCTIONS: _functions,
        Resource.EVENT_SOURCES: lambda _: _Found(("*",), "The list of mappings is no resource of IAM."),
        Resource.METRICS: lambda _: _Found(("*",), "Metrics are no resources of IAM."),
        Resource.FOREIGN_GATEWAYS: _foreign_gateways,
    }
)
