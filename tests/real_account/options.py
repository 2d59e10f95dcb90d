"""The options of the mesh file that only AWS can prove, and the others with the reason why it need not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BASE: dict[str, Any] = {
    "actors": {
        "check": {"handler": "flights.inspect_dataset", "can_send_to": ["publish"]},
        "publish": {"handler": "flights.publish_report", "can_send_to": []},
    },
    "operators": ["arn:aws:iam::*:role/*", "arn:aws:iam::*:user/*"],
    "storage": {"removal": "delete"},
}
"""What each of the meshes has."""


@dataclass(frozen=True)
class Risk:
    """An option that AWS may refuse although every test passes.

    Attributes:
        name: its name in the plan.
        shows: what a deployment with it shows.
        keys: the keys of the mesh file that it sets, as `schema_keys` names them.
        document: what it adds to the mesh file; `{name}` stands for a value of the account.
        account: the names of the values that it needs.
        after: the option that it needs.
    """

    name: str
    shows: str
    keys: tuple[str, ...]
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
        ("actor.spark", "actor.timeout"),
        {"jobs": "{jobs}", "actors": {"clean": {"spark": {"job": "flights.clean_flights"}, "timeout": "15m"}}},
    ),
    Risk(
        "key of your own",
        "the key's policy admits every service that encrypts",
        ("storage.kms_key",),
        {"storage": {"kms_key": "{kms_key}"}},
        account=("kms_key",),
    ),
    Risk(
        "VPC",
        "functions and job runs reach AWS from the subnets",
        ("mesh.vpc",),
        {"vpc": {"subnets": "{subnets}", "security_groups": "{security_groups}"}},
        account=("subnets", "security_groups"),
    ),
    Risk(
        "linger",
        "the bucket's events reach resident runs",
        ("spark.linger",),
        {"actors": {"clean": {"spark": {"linger": "2m"}}}},
        after="heavy actor",
    ),
    Risk(
        "Iceberg tables",
        "the jar of EMR Serverless and the Glue permissions are accepted",
        ("spark settings.catalog", "spark settings.tables", "access.database"),
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
        ("application.warm",),
        {"spark": {"application": {"warm": {"drivers": 1, "executors": 1}}}},
        after="heavy actor",
    ),
    Risk(
        "pause with a link",
        "links are signed and answered",
        ("actor.pause", "pause.callback"),
        {"actors": {"approve": {"kind": "pause", "pause": {"prompt": "Go on?", "callback": True}}}},
    ),
    Risk(
        "pause notifications",
        "EventBridge may publish to the encrypted topic",
        ("pause.notify",),
        {"actors": {"ask": {"kind": "pause", "pause": {"prompt": "Go on?", "notify": ["{email}"]}}}},
        account=("email",),
    ),
    Risk(
        "alarms by mail",
        "CloudWatch may publish to the encrypted topic",
        ("mesh.notify", "notify.email", "notify.critical"),
        {"notify": {"email": ["{email}"], "critical": {"email": ["{email}"]}}},
        account=("email",),
    ),
    Risk(
        "tokens",
        "the second API takes tokens of the issuer",
        ("gateway.jwt",),
        {"gateway": {"jwt": {"issuer": "{issuer}", "audience": ["real-account-smoke"]}}},
        account=("issuer",),
    ),
    Risk(
        "streams through a REST API",
        "the layer with the web adapter exists in the region",
        ("gateway.streaming",),
        {"gateway": {"streaming": "adapter"}},
    ),
    Risk(
        "reserved streams",
        "the account may reserve concurrency",
        ("gateway.watchers", "actor.reserved"),
        {"gateway": {"watchers": 2}, "actors": {"publish": {"reserved": 2, "concurrency": 2}}},
        excludes=("pollers",),
    ),
    Risk(
        "schedule",
        "a rule may call the queue of triggers",
        ("trigger.cron", "trigger.route"),
        {"triggers": {"nightly": {"cron": "0 2 * * *", "route": ["publish"]}}},
    ),
    Risk(
        "object trigger",
        "the bucket may notify the queue",
        ("trigger.s3",),
        {"triggers": {"arrival": {"s3": {"bucket": "data", "prefix": "incoming/"}, "route": ["publish"]}}},
    ),
    Risk(
        "event trigger",
        "EventBridge takes the pattern",
        ("trigger.event",),
        {"triggers": {"event": {"event": {"source": ["real.account.smoke"]}, "route": ["publish"]}}},
    ),
    Risk(
        "webhook",
        "the open route has its throttle",
        ("trigger.webhook",),
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
        ("mesh.tools",),
        {"tools": {"report": {"description": "One report", "route": ["check", "publish"]}}},
    ),
    Risk(
        "fan-in, wait and end actors",
        "the other kinds are deployed",
        ("actor.kind", "actor.fan_in", "actor.wait", "sink.hooks"),
        {
            "actors": {
                "gather": {"kind": "fan_in", "fan_in": {"timeout": "10m"}},
                "rest": {"kind": "wait", "wait": {"for": "1m"}},
            },
            "sink": {"hooks": ["publish"]},
        },
    ),
    Risk(
        "pollers", "the mapping takes provisioned pollers", ("actor.pollers",), _publish(pollers={"min": 2, "max": 4})
    ),
    Risk("provisioned concurrency", "the alias is called", ("actor.provisioned",), _actor("warm", provisioned=1)),
    Risk(
        "large batches",
        "the mapping takes a window",
        ("actor.batch",),
        _actor("many", batch={"size": 100, "window": "5s"}, timeout="2s"),
    ),
    Risk(
        "secrets and access",
        "policies of all kinds of entries are accepted",
        ("actor.secrets", "actor.access"),
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
        ("mesh.telemetry", "telemetry.xray"),
        {"telemetry": {"xray": True, "sample": "10%"}},
    ),
    Risk(
        "permissions boundary",
        "roles within the boundary can be made",
        ("mesh.permissions_boundary",),
        {"permissions_boundary": "{boundary}"},
        account=("boundary",),
    ),
    Risk(
        "buckets that exist",
        "roles reach buckets that the mesh did not make",
        ("storage.data_bucket",),
        {"storage": {"data_bucket": "{data_bucket}"}},
        account=("data_bucket",),
        excludes=("object trigger", "linger", "Iceberg tables"),
    ),
    Risk(
        "retention of logs",
        "the log groups keep as long",
        ("storage.retention",),
        {"storage": {"retention": {"logs": "7d"}}},
    ),
    Risk("tags", "every resource takes the tags", ("mesh.tags",), {"tags": {"team": "data"}}),
    Risk(
        "foreign gateways",
        "the policy for other APIs is accepted",
        ("gateway.foreign_gateways",),
        {"gateway": {"foreign_gateways": ["abcdefghij.execute-api.eu-central-1.amazonaws.com"]}},
    ),
    Risk("crew kept warm", "the alias of x-sink is called", ("crew.x-sink",), {"crew": {"x-sink": {"provisioned": 1}}}),
)

_INPUT = "read by the command, not by AWS"
_CODE = "read by functions, and in no template but the actor table"
_NUMBER = "a number within a bound of AWS that the limit gate checks"
ORDINARY = {
    **dict.fromkeys(
        (
            *(
                "mesh.namespace",
                "mesh.code",
                "mesh.jobs",
                "mesh.capabilities",
                "mesh.requirements_hashes",
                "mesh.defaults",
            ),
            *(
                "mesh.actors",
                "mesh.stages",
                "mesh.account",
                "mesh.region",
                "mesh.bootstrap_qualifier",
                "mesh.shards",
                "mesh.run_triggers",
            ),
            *(
                "mesh.triggers",
                "mesh.gateway",
                "mesh.spark",
                "mesh.storage",
                "mesh.sink",
                "mesh.crew",
                "mesh.operators",
            ),
            *("spark settings.application", "spark.job", "actor.handler", "trigger.tool", "access.location"),
        ),
        _INPUT,
    ),
    **dict.fromkeys(
        (
            *("mesh.agent", "mesh.max_hops", "mesh.max_children", "actor.env", "actor.resiliency", "actor.deduplicate"),
            *(
                "actor.frames",
                "actor.handler_mode",
                "actor.fan_out_lists",
                "actor.validate",
                "actor.fair_by",
                "actor.keep_input",
            ),
            *(
                "actor.child_ids",
                "actor.failed_payload",
                "actor.responses",
                "actor.can_send_to",
                "pause.prompt",
                "pause.show",
            ),
            *(
                "pause.fields",
                "pause.callback_key",
                "trigger.timeout",
                "trigger.enabled",
                "trigger.payload",
                "trigger.input",
            ),
            *(
                "trigger.overlap",
                "trigger.by",
                "trigger.debounce",
                "trigger.batch",
                "trigger.timezone",
                "trigger.catch_up",
            ),
            *("sink.persist", "sink.layout", "sink.prefixes", "sink.hooks_for_children", "sink.index", "sink.endpoint"),
            *("gateway.long_polls", "gateway.long_polls_per_caller", "gateway.notification_hosts", "gateway.starts"),
            *(
                "spark.driver",
                "spark.executors",
                "spark.conf",
                "spark.archives",
                "spark.py_files",
                "spark.payload_schema",
            ),
            *("spark.max_run", "spark.parallel", "spark.max_runs", "spark.priority", "spark.catalog", "spark.tables"),
            *("spark settings.start_rate", "telemetry.sample", "telemetry.otlp", "notify.thresholds", "access.read"),
            *("access.write", "access.bucket", "access.table", "access.secret", "access.statement"),
        ),
        _CODE,
    ),
    **dict.fromkeys(
        (
            *("actor.memory", "actor.concurrency", "actor.max_receives", "gateway.max_body", "crew.x-sump"),
            *(
                "application.max_vcpu",
                "application.max_memory",
                "application.max_concurrent_runs",
                "application.oversubscribe",
            ),
            *("application.idle_stop", "application.architecture", "application.release"),
        ),
        _NUMBER,
    ),
    "application.id": "another mesh's application, which this script has not",
    "application.vpc": "as `mesh.vpc`",
    "storage.results_bucket": "as `storage.data_bucket`",
    "storage.removal": "each mesh has `delete`, so that nothing is left",
    "notify.https": "an address that confirms, which this script has not",
    "notify.topic": "without --all: `--topic`",
    "telemetry.collector": "a layer of the user's, which this script has not",
}
"""Keys of the mesh file that no deployment of these meshes shows, with the reason."""

_SECTIONS = {
    "mesh": "",
    "actor": "ActorSection",
    "pause": "PauseSection",
    "trigger": "TriggerSection",
    "gateway": "GatewaySection",
    "sink": "SinkSection",
    "crew": "CrewSection",
    "storage": "StorageSection",
    "notify": "NotifySection",
    "telemetry": "TelemetrySection",
    "access": "AccessEntry",
    "spark": "SparkSection",
    "spark settings": "SparkSettings",
    "application": "ApplicationSection",
}


def schema_keys(schema: Mapping[str, Any]) -> set[str]:
    """Return the keys of the mesh file, as `section.key`."""
    return {
        f"{section}.{key}"
        for section, definition in _SECTIONS.items()
        for key in (schema["$defs"][definition] if definition else schema)["properties"]
    }
