"""A mesh of a hundred actors, the same on every call: each kind of actor, and each setting on some of them."""

import json
from pathlib import Path
from typing import Any

ACTORS = 100

_HANDLERS = '''"""Handlers of the mesh of a hundred actors."""


class Counter:
    def count(self, payload):
        return payload


def keep(payload):
    return payload


def whole(envelope):
    return envelope
'''
_JOBS = '''"""Jobs of the mesh of a hundred actors."""


def one(spark, payload):
    return payload


def many(spark, envelopes):
    return envelopes
'''
_FAN_INS = (17, 42, 67)
_PAUSES = (18, 43, 68)
_ENDS = (19, 94)
_ACCESS: tuple[dict[str, Any], ...] = (
    {"bucket": "data", "read": "raw/*", "write": ["clean/*", "tmp/*"]},
    {"bucket": "results", "read": True},
    {"bucket": "partner-files", "read": "incoming/*"},
    {"table": "rates", "read": True, "write": "eu-*"},
    {"secret": "partner-key", "read": True},
    {"statement": {"Action": "kms:Decrypt", "Resource": "arn:aws:kms:eu-central-1:111122223333:key/abc"}},
)


def write_mesh(folder: Path) -> Path:
    """Write the mesh and its code to a folder; return the path of the mesh file."""
    for name, source in (("handlers/work.py", _HANDLERS), ("jobs/heavy.py", _JOBS)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(source)
    file = folder / "mesh.yaml"
    file.write_text(json.dumps(_mesh(), indent=1))  # JSON is YAML
    return file


def _name(number: int) -> str:
    return f"actor-{number:02}"


def _mesh() -> dict[str, Any]:
    actors = {_name(number): _actor(number) for number in range(ACTORS)}
    return {
        "namespace": "hundred",
        "code": "handlers",
        "jobs": "jobs",
        "shards": 8,
        "defaults": {"timeout": "20s", "batch": {"size": 5}, "concurrency": 20},
        "actors": {
            **actors,
            "x-fan-in": {"kind": "fan_in", "memory": "1g", "fan_in": {"on_failure": "partial", "quorum": 3}},
            "x-pause": {"kind": "pause", "pause": {"prompt": "Look at this", "notify": "ops@example.org"}},
        },
        "tools": {f"tool-{number}": _tool(number) for number in range(12)},
        "agent": {"name": "A hundred", "description": "A hundred actors", "version": "7"},
        "sink": {"layout": "by-time", "hooks": [_name(1), _name(2)], "hooks_for_children": True},
        "crew": {"x-sink": {"memory": "1g", "provisioned": 1}, "x-sump": {"batch_size": 5, "concurrency": 10}},
        "gateway": {
            "jwt": {"issuer": "https://login.example.com/", "audience": ["hundred", "web"], "calls": ["tasks", "mcp"]},
            "streaming": "adapter",
            "watchers": 20,
            "max_body": "512k",
            "foreign_gateways": ["callbacks.example.org"],
            "notification_hosts": ["callbacks.example.org"],
        },
        "spark": {
            "application": {"max_vcpu": 64, "warm": {"drivers": 2, "executors": 4}, "max_concurrent_runs": 20},
            "start_rate": {"per_second": 2, "burst": 50},
        },
        "storage": {"retention": {"tasks": "10d", "payloads": "20d", "runs": "7d", "results": "90d"}},
        "max_hops": 500,
        "operators": ["arn:aws:iam::*:role/Admin", "groups=mesh-operators"],
        "tags": {"team": "hundred", "cost-centre": "42"},
    }


def _tool(number: int) -> dict[str, Any]:
    """Tools share some actors; every second one ends at a fan-in or a pause."""
    first = 8 * number
    route = [_name(first + step) for step in range(4)]
    if number % 2:
        route.append(("x-fan-in", "x-pause", _name(_FAN_INS[0]), _name(_PAUSES[0]))[number // 2 % 4])
    return {"description": f"Tool {number}", "route": [*route, _name(96)], "timeout": f"{number + 1}m"}


def _actor(number: int) -> dict[str, Any]:
    if number % 5 == 0:
        actor = _heavy(number)
    elif number in _FAN_INS:
        actor = {"kind": "fan_in", "fan_in": {"timeout": f"{number}m", "ttl": "3d"}, "memory": "1g"}
    elif number in _PAUSES:
        actor = {"kind": "pause", "pause": _pause(number)}
    elif number in _ENDS:
        actor = {"kind": "end", "handler": "work.whole", "handler_mode": "envelope", "validate": False}
    else:
        actor = _light(number)
    return actor


def _light(number: int) -> dict[str, Any]:
    handler = "work.Counter.count" if number % 7 == 0 else "work.keep"
    actor: dict[str, Any] = {"handler": handler, **_settings(number)}
    if number % 11 == 0:
        actor |= {"batch": {"size": 50, "window": "2s"}, "timeout": "3s"}
    if number % 13 == 0:
        actor |= {"provisioned": number % 3 + 1}
    if number % 17 == 0:
        actor |= {"handler": "work.whole", "handler_mode": "envelope-v1", "child_ids": "suffix"}
    return actor


def _heavy(number: int) -> dict[str, Any]:
    spark: dict[str, Any] = {"job": "heavy.one", "executors": {"max": number // 10 + 1}}
    if number % 2:
        spark |= {"job": "heavy.many", "payload_schema": "airport STRING, delay DOUBLE"}
    if number % 4 == 0:
        spark |= {"driver": {"cores": 2, "memory": "4g", "disk": "40g"}, "conf": {"spark.sql.shuffle.partitions": "8"}}
    if number % 20 == 15:
        spark |= {"archives": ["s3://partner-files/models.tar.gz#models"], "py_files": ["s3://partner-files/more.zip"]}
    return {
        "spark": {**spark, "max_run": f"{number + 10}m"},
        **_settings(number),
        "timeout": "10m",
        "batch": {"size": number + 1, "window": "2s"},
    }


def _pause(number: int) -> dict[str, Any]:
    fields = [
        {"name": "approved", "type": "boolean", "prompt": "Go on?"},
        {"name": "channel", "type": "string", "payload_key": "/order/channel", "required": False, "default": "mail"},
    ]
    notify = ["orders@example.org", "https://example.org/orders", "arn:aws:sqs:eu-west-1:111122223333:orders"]
    return {"prompt": f"Pause {number}", "fields": fields, "notify": notify[: number % 4]}


def _settings(number: int) -> dict[str, Any]:
    """Return optional settings of an actor, selected by its number."""
    choices: list[tuple[int, dict[str, Any]]] = [
        (3, {"memory": 256 * (number % 4 + 1)}),
        (4, {"env": {"CURRENCY": "EUR", "NUMBER": str(number)}}),
        (6, {"access": [_ACCESS[number // 6 % len(_ACCESS)], _ACCESS[(number // 6 + 1) % len(_ACCESS)]]}),
        (7, {"can_send_to": [_name((number + 1) % ACTORS), _name((number + 2) % ACTORS)]}),
        (9, {"resiliency": _resiliency(number)}),
        (12, {"max_receives": 3, "concurrency": 10}),
        (14, {"keep_input": True}),
        (16, {"frames": "buffered", "fan_out_lists": True}),
        (19, {"fair_by": "x-tenant"}),
        (22, {"failed_payload": "wrapped"}),
        (23, {"can_send_to": "*"}),
    ]
    chosen: dict[str, Any] = {}
    for every, setting in choices:
        if number % every == 0:
            chosen |= setting
    if number % 5 and number % 8 == 0:
        chosen |= {"deduplicate": True}
    return chosen


def _resiliency(number: int) -> dict[str, Any]:
    later = {
        "max_attempts": 3,
        "backoff": "linear",
        "initial_delay": "2s",
        "then_route": [_name((number + 3) % ACTORS)],
    }
    breaker = {"failures": 5, "window": "1m", "open_for": "30s"}
    return {
        "policies": {"later": later, "default": {"max_attempts": 2, "jitter": True, "max_duration": "1h"}},
        "rules": [{"errors": ["ConnectionError", "work.Broken"], "policy": "later"}],
        **({"circuit_breaker": breaker} if number % 2 and number % 5 else {}),
    }
