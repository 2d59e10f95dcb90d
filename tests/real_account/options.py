"""The options of the mesh file that only AWS can prove.

The list of all options is that of the pairwise meshes (`tests.infra.combinations.options`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.infra.combinations.options import ANY, Path, declared

BASE: dict[str, Any] = {
    "actors": {
        "check": {"handler": "flights.inspect_dataset", "can_send_to": ["publish"]},
        "publish": {"handler": "flights.publish_report", "can_send_to": []},
    },
    "operators": ["arn:aws:iam::*:role/*", "arn:aws:iam::*:user/*"],
    "storage": {"removal": "delete"},
    "crew": {"routable": ["x-checkpoint"]},
}
"""What each of the meshes has."""


@dataclass(frozen=True)
class Risk:
    """An option that AWS may refuse although every test passes.

    Attributes:
        name: its name in the plan.
        shows: what a deployment with it shows.
        document: what it adds to the mesh file; `{name}` stands for a value of the account.
        account: the names of the values that it needs.
        after: the option that it needs.
    """

    name: str
    shows: str
    document: Mapping[str, Any]
    account: tuple[str, ...] = ()
    after: str = ""
    excludes: tuple[str, ...] = field(default=())


def _actor(name: str, **settings: Any) -> dict[str, Any]:
    return {"actors": {name: {"handler": "flights.inspect_dataset", "can_send_to": [], **settings}}}


def _publish(**settings: Any) -> dict[str, Any]:
    return {"actors": {"publish": settings}}


RISKS = (
    Risk(
        "heavy actor",
        "job runs may read their code and its key, and start",
        {"jobs": "{jobs}", "actors": {"clean": {"spark": {"job": "flights.clean_flights"}, "timeout": "15m"}}},
    ),
    Risk(
        "key of your own",
        "the key's policy admits every service that encrypts",
        {"storage": {"kms_key": "{kms_key}"}},
        account=("kms_key",),
    ),
    Risk(
        "VPC",
        "functions and job runs reach AWS from the subnets",
        {"vpc": {"subnets": "{subnets}", "security_groups": "{security_groups}"}},
        account=("subnets", "security_groups"),
    ),
    Risk(
        "linger",
        "the bucket's events reach resident runs",
        {"actors": {"clean": {"spark": {"linger": "2m"}}}},
        after="heavy actor",
    ),
    Risk(
        "Iceberg tables",
        "the jar of EMR Serverless and the Glue permissions are accepted",
        {
            "spark": {"catalog": "glue", "tables": "iceberg"},
            "actors": {
                "clean": {"access": [{"database": "default", "location": "s3://{bucket}/data/tables", "read": "*"}]}
            },
        },
        after="heavy actor",
    ),
    Risk(
        "warm workers",
        "the application takes an initial capacity",
        {"spark": {"application": {"warm": {"drivers": 1, "executors": 1}}}},
        after="heavy actor",
    ),
    Risk(
        "pause with a link",
        "links are signed and answered",
        {"actors": {"approve": {"kind": "pause", "pause": {"prompt": "Go on?", "callback": True}}}},
    ),
    Risk(
        "pause notifications",
        "EventBridge may publish to the encrypted topic",
        {"actors": {"ask": {"kind": "pause", "pause": {"prompt": "Go on?", "notify": ["{email}"]}}}},
        account=("email",),
    ),
    Risk(
        "alarms by mail",
        "CloudWatch may publish to the encrypted topic",
        {"notify": {"email": ["{email}"], "critical": {"email": ["{email}"]}}},
        account=("email",),
    ),
    Risk(
        "tokens",
        "the second API takes tokens of the issuer",
        {"gateway": {"jwt": {"issuer": "{issuer}", "audience": ["real-account-smoke"]}}},
        account=("issuer",),
    ),
    Risk(
        "streams through a REST API",
        "the layer with the web adapter exists in the region",
        {"gateway": {"streaming": "adapter"}},
    ),
    Risk(
        "reserved streams",
        "the account may reserve concurrency",
        {"gateway": {"watchers": 2}, "actors": {"publish": {"reserved": 2, "concurrency": 2}}},
        excludes=("pollers",),
    ),
    Risk(
        "schedule",
        "a rule may call the queue of triggers",
        {"triggers": {"nightly": {"cron": "0 2 * * *", "route": ["publish"]}}},
    ),
    Risk(
        "object trigger",
        "the bucket may notify the queue",
        {"triggers": {"arrival": {"s3": {"bucket": "data", "prefix": "incoming/"}, "route": ["publish"]}}},
    ),
    Risk(
        "event trigger",
        "EventBridge takes the pattern",
        {"triggers": {"event": {"event": {"source": ["real.account.smoke"]}, "route": ["publish"]}}},
    ),
    Risk(
        "webhook",
        "the open route has its throttle",
        {
            "triggers": {
                "hook": {
                    "webhook": {"secret": "ssm:/real-account-smoke/hook", "signature": "github"},
                    "route": ["publish"],
                }
            }
        },
    ),
    Risk(
        "tools",
        "routes and push notifications of tools are deployed",
        {"tools": {"report": {"description": "One report", "route": ["check", "publish"]}}},
    ),
    Risk(
        "fan-in, wait and end actors",
        "the other kinds are deployed",
        {
            "actors": {
                "gather": {"kind": "fan_in", "fan_in": {"timeout": "10m"}},
                "rest": {"kind": "wait", "wait": {"for": "1m"}},
            },
            "sink": {"hooks": ["publish"]},
        },
    ),
    Risk("pollers", "the mapping takes provisioned pollers", _publish(pollers={"min": 2, "max": 4})),
    Risk("provisioned concurrency", "the alias is called", _actor("warm", provisioned=1)),
    Risk(
        "large batches",
        "the mapping takes a window",
        _actor("many", batch={"size": 100, "window": "5s"}, timeout="2s"),
    ),
    Risk(
        "secrets and access",
        "policies of all kinds of entries are accepted",
        _actor(
            "reader",
            secrets={"KEY": "ssm:/real-account-smoke/key"},
            access=[
                {"bucket": "data", "read": "raw/*", "write": "clean/*"},
                {"table": "real-account-smoke", "read": True},
                {"secret": "real-account-smoke", "read": True},
            ],
        ),
    ),
    Risk(
        "X-Ray",
        "functions may write spans",
        {"telemetry": {"xray": True, "sample": "10%"}},
    ),
    Risk(
        "dashboards",
        "CloudWatch accepts the bodies",
        {"telemetry": {"dashboards": True}},
    ),
    Risk(
        "permissions boundary",
        "roles within the boundary can be made",
        {"permissions_boundary": "{boundary}"},
        account=("boundary",),
    ),
    Risk(
        "buckets that exist",
        "roles reach buckets that the mesh did not make",
        {"storage": {"data_bucket": "{data_bucket}"}},
        account=("data_bucket",),
        excludes=("object trigger", "linger", "Iceberg tables"),
    ),
    Risk(
        "retention of logs",
        "the log groups keep as long",
        {"storage": {"retention": {"logs": "7d"}}},
    ),
    Risk("tags", "every resource takes the tags", {"tags": {"team": "data"}}),
    Risk(
        "foreign gateways",
        "the policy for other APIs is accepted",
        {"gateway": {"foreign_gateways": ["abcdefghij.execute-api.eu-central-1.amazonaws.com"]}},
    ),
    Risk("crew kept warm", "the alias of x-sink is called", {"crew": {"x-sink": {"provisioned": 1}}}),
)

UNREACHABLE = {
    "spark.application.id": "an application of another mesh",
    "notify.https": "an address that confirms",
    "notify.topic": "a topic; without --all, `--topic` names one",
    "telemetry.collector": "a layer with a collector",
}
"""Options that AWS could refuse, but that the script cannot deploy, with the reason."""
_ENTRIES = ("actors", "tools", "triggers")


def settings() -> set[str]:
    """Return the options of the mesh file, without the actors, tools and triggers that have them."""
    return {option.name for option in declared() if len(option.path) > 2 or option.path[0] not in _ENTRIES}


def set_in(document: Mapping[str, Any]) -> set[str]:
    """Return the options that are set in a mesh file."""
    return set(_names(document, ())) & settings()


def _names(section: Mapping[str, Any], place: Path) -> Iterator[str]:
    for key, value in section.items():
        path = (*place, ANY if place in {(each,) for each in _ENTRIES} else key)
        yield ".".join(path)
        if isinstance(value, Mapping):
            yield from _names(value, path)
