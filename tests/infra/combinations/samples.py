"""Values that no type tells: texts, lists and mappings, the entries of free mappings, and the code that they name.

Where AWS or the loader has a limit, one of the values is at it. `test_combinations` fails for a key whose values no mesh may have.
"""

from typing import Any

from asya.registry import PRODUCT

_ACCOUNT, _REGION = "111122223333", "eu-west-1"
_KEY = f"arn:aws:kms:{_REGION}:{_ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
_SUBNETS = [f"subnet-0123456789abcde{number:02x}" for number in range(16)]
_GROUPS = [f"sg-0123456789abcde{number:02x}" for number in range(5)]
_QUEUE = f"arn:aws:sqs:{_REGION}:{_ACCOUNT}:orders"

CODE = {
    "handlers/work.py": "def one(payload):\n    return payload\n",
    "jobs/crunch.py": "def one(spark, payload):\n    return payload\n\n\ndef rows(spark, envelopes):\n    return envelopes\n",
}
"""The code of all meshes, by file."""
FIXED: dict[str, Any] = {"code": "handlers", "jobs": "jobs"}
"""The keys that every mesh has."""

_KINDS: dict[str, dict[str, Any]] = {
    "end": {"handler": "work.one", "handler_mode": "envelope", "validate": False},
    "wait": {"wait": {"for": "1h"}},
}
_ACTORS: dict[str, dict[str, Any]] = {
    "light": {"handler": "work.one"},
    "heavy": {"spark": {"job": "crunch.one"}},
    "rows": {"spark": {"job": "crunch.rows"}},
    **{kind.replace("_", "-"): {"kind": kind, **_KINDS.get(kind, {})} for kind in PRODUCT.kinds},
    "wait-until": {"kind": "wait", "wait": {"until": "/due"}},
}
_TRIGGERS: dict[str, dict[str, Any]] = {
    "cron": {"cron": "0 3 * * *", "route": ["light"]},
    "s3": {"s3": {"bucket": "landing"}, "route": ["light"]},
    "s3-own": {"s3": {"bucket": "data", "prefix": "landed/"}, "route": ["light"]},
    "event": {"event": {"source": ["shop.orders"]}, "route": ["light"]},
    "webhook": {"webhook": {"secret": "hooks/shop", "signature": "hmac-sha256"}, "route": ["light"]},
}
ENTRIES: dict[tuple[str, ...], dict[str, Any]] = {
    ("actors",): _ACTORS,
    ("tools",): {"order": {"route": ["light"]}, "every": {"route": [*_ACTORS][:2]}},
    ("triggers",): _TRIGGERS,
    ("defaults", "resiliency", "policies"): {"later": {"max_attempts": 2}},
    ("actors", "*", "resiliency", "policies"): {"later": {"max_attempts": 2}},
}
"""The entries of mappings with free keys; each may be there or not."""

SKELETON = {
    *(("code",), ("jobs",)),
    *(("actors", "*", key) for key in ("handler", "spark", "kind", "wait")),
    *(("triggers", "*", key) for key in ("cron", "s3", "event", "webhook", "tool")),
    ("actors", "*", "spark", "job"),
}
"""The keys that every mesh has, or that make an actor or a trigger what it is."""


def _settings(place: tuple[str, ...]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """Return values of the keys that actors and `defaults` share."""
    return {
        (*place, "env"): ({"MODE": "fast"}, {"TEXT": "x" * 2_996}),
        (*place, "access"): (
            [
                {"bucket": "data", "read": ["in/*"], "write": "out/*"},
                {"table": "prices", "read": True, "write": "own*"},
                {"secret": "partner-key", "read": True, "write": True},
                {"statement": {"Action": "sns:Publish", "Resource": f"arn:aws:sns:{_REGION}:{_ACCOUNT}:news"}},
            ],
            [
                {"database": "sales", "location": "s3://lake/sales", "read": "orders", "write": "out_*"},
                {"bucket": "lake", "read": [f"raw/{number:02}/*" for number in range(20)]},
            ],
        ),
        (*place, "can_send_to"): ("*", ["light"], []),
        (*place, "fair_by"): ("owner", "x-tenant"),
        (*place, "resiliency", "rules"): ([{"errors": ["OSError", "work.Failure"], "policy": "later"}],),
        (*place, "resiliency", "circuit_breaker"): ({"failures": 1, "window": "1s", "open_for": "1s"},),
        (*place, "resiliency", "policies", "*", "then_route"): (["light"],),
    }


def _spark(place: tuple[str, ...]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    return {
        (*place, "conf"): ({"spark.sql.shuffle.partitions": "8"},),
        (*place, "archives"): (["s3://shop-code/env.tar.gz#env"],),
        (*place, "py_files"): (["s3://shop-code/more.zip"],),
        (*place, "payload_schema"): ("n INT",),
        (*place, "size_by"): ("/rows",),
        (*place, "sizes"): (
            {
                "small": {},
                "large": {"driver": {"memory": "4g"}, "executors": {"max": 5}, "conf": {"spark.task.cpus": "1"}},
            },
            # With `size_by`, as many as there may be.
            {f"up-to-{number}-million-rows": {"up_to": number * 1e6} for number in range(1, 8)} | {"all": {}},
        ),
    }


SAMPLES: dict[tuple[str, ...], tuple[Any, ...]] = {
    **_settings(("defaults",)),
    **_settings(("actors", "*")),
    **_spark(("actors", "*", "spark")),
    ("namespace",): ("shop", "a", "n" * 58),
    ("capabilities",): (),
    ("actors", "*", "secrets"): ({"TOKEN": "shop/token"}, {"TOKEN": "ssm:/shop/token"}),
    ("actors", "*", "pause", "prompt"): ("Publish {/title}?",),
    ("actors", "*", "pause", "show"): (["/title"],),
    ("actors", "*", "pause", "fields"): (
        [
            {"name": "note", "type": "string", "prompt": "Why?", "payload_key": "/note", "required": False}
            | {"default": "x", "options": ["x", "y"]}
        ],
    ),
    ("actors", "*", "pause", "callback_key"): ("/link",),
    ("actors", "*", "pause", "notify"): (["ops@example.org", "https://example.org/asked", _QUEUE],),
    ("actors", "*", "wait", "until"): (),
    ("tools", "*", "description"): ("Takes an order.",),
    ("tools", "*", "route"): (["light", "x-checkpoint"],),
    ("tools", "*", "input_schema"): ({"type": "object", "properties": {"title": {"type": "string"}}},),
    ("triggers", "*", "route"): (["light", "x-checkpoint"],),
    ("triggers", "*", "payload"): ({"title": "new"},),
    ("triggers", "*", "input"): ("/detail",),
    ("triggers", "*", "by"): ("/title",),
    ("triggers", "*", "batch"): ({"size": 1, "window": "1s"}, {"size": 1000, "window": "15m"}),
    ("triggers", "*", "timezone"): ("Europe/Oslo",),
    ("triggers", "*", "s3", "bucket"): (),
    ("triggers", "*", "s3", "prefix"): ("landed/", "p" * 1024),
    ("triggers", "*", "s3", "suffix"): (".csv",),
    ("triggers", "*", "event", "source"): (),
    ("triggers", "*", "event", "detail-type"): (["placed"],),
    ("triggers", "*", "event", "detail"): ({"total": [{"numeric": [">", 3]}]},),
    ("triggers", "*", "event", "resources"): ([f"arn:aws:s3:::landing/{number}" for number in range(5)],),
    ("triggers", "*", "event", "account"): (_ACCOUNT,),
    ("triggers", "*", "event", "region"): (_REGION,),
    ("triggers", "*", "event", "bus"): ("orders",),
    ("triggers", "*", "webhook", "secret"): ("ssm:/hooks/shop",),
    ("triggers", "*", "webhook", "header"): ("X-Sum",),
    ("triggers", "*", "webhook", "id"): ("/id", "X-Id"),
    ("agent", "name"): ("Shop",),
    ("agent", "version"): ("2",),
    ("agent", "skills"): ([{"id": "order"}],),
    ("sink", "prefixes", "succeeded"): ("good",),
    ("sink", "prefixes", "failed"): ("bad/",),
    ("sink", "hooks"): (["light"],),
    ("sink", "endpoint"): ("https://s3.example",),
    ("gateway", "jwt"): ({"issuer": "https://id.example", "audience": ["shop"]},),
    ("gateway", "jwt", "issuer"): (),
    ("gateway", "jwt", "audience"): ([f"client-{number}" for number in range(50)],),
    ("gateway", "jwt", "calls"): (["tools"], ["tasks", "streams"]),
    ("gateway", "jwt", "tenant"): ("org_id",),
    ("gateway", "foreign_gateways"): (["abc123.execute-api.eu-west-1.amazonaws.com"],),
    ("gateway", "notification_hosts"): (["callbacks.internal:8080"],),
    ("gateway", "starts"): (["light"], []),
    ("spark", "application", "id"): ("00abc",),
    ("spark", "application", "release"): ("emr-spark-8.0.0",),
    ("spark", "application", "vpc"): ({"subnets": _SUBNETS, "security_groups": _GROUPS},),
    ("storage", "data_bucket"): ("lake",),
    ("storage", "results_bucket"): ("lake-results", "lake"),
    ("storage", "kms_key"): (_KEY,),
    ("storage", "retention", "logs"): ("1d", "3653d"),
    ("notify", "email"): (["ops@example.org", "orders@example.org"],),
    ("notify", "https"): (["https://events.example.org/asya"],),
    ("notify", "topic"): (f"arn:aws:sns:{_REGION}:{_ACCOUNT}:alarms",),
    ("notify", "critical", "email"): (["pager@example.org"],),
    ("notify", "critical", "https"): (["https://pager.example.org/asya"],),
    ("notify", "critical", "topic"): (f"arn:aws:sns:{_REGION}:{_ACCOUNT}:critical",),
    ("telemetry", "otlp"): ("https://collector.example",),
    ("telemetry", "collector"): (
        [f"arn:aws:lambda:{_REGION}:{_ACCOUNT}:layer:collector:3"],
        [f"arn:aws:lambda:{_REGION}:{_ACCOUNT}:layer:part-{number}:1" for number in range(4)],
    ),
    ("operators",): ([f"arn:aws:iam::{_ACCOUNT}:role/Admin"], ["groups=ops"]),
    ("tags",): ({"team": "orders"}, {f"tag-{number:02}": "v" * 20 for number in range(47)}),
    ("account",): (_ACCOUNT,),
    ("region",): (_REGION,),
    ("vpc",): (
        {"subnets": _SUBNETS[:1], "security_groups": _GROUPS[:1]},
        {"subnets": _SUBNETS, "security_groups": _GROUPS},
    ),
    ("permissions_boundary",): ("team/boundary", f"arn:aws:iam::{_ACCOUNT}:policy/boundary"),
    ("bootstrap_qualifier",): ("team",),
    ("crew", "routable"): (["x-checkpoint", "x-fan-in", "x-pause"], ["x-resume"]),
    ("shards",): (1, 8),
    ("stages",): ({"test": {"max_hops": 50}},),
}
"""The values of a key; none for a key that an entry has."""

# An actor of a kind without a circuit breaker takes that of `defaults` back.
SAMPLES["actors", "*", "resiliency", "circuit_breaker"] += (None,)
for _place in (("vpc",), ("spark", "application", "vpc")):
    SAMPLES |= {(*_place, key): () for key in ("subnets", "security_groups")}
for _place in (("defaults",), ("actors", "*")):
    SAMPLES |= {(*_place, "resiliency", "circuit_breaker", key): () for key in ("failures", "window", "open_for")}
SAMPLES |= {("triggers", "*", "batch", key): () for key in ("size", "window")}

TAKE_AWAY = frozenset(
    {
        *(
            "actors.*.pollers",
            "actors.*.fan_in.quorum",
            "crew.x-sink.enabled",
            "crew.x-sump.enabled",
            "sink.persist",
            "sink.index",
        ),
        *(
            "run_triggers",
            "triggers.*.enabled",
            "notify.topic",
            "spark.application.id",
            "telemetry.xray",
            "telemetry.otlp",
        ),
        *(
            "storage.data_bucket",
            "storage.results_bucket",
            "gateway.starts",
            "actors.*.wait.until",
            "defaults.can_send_to",
        ),
    }
)
"""The options that take resources away, or another option: a mesh with everything on has none of them."""
