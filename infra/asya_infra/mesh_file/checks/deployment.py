"""Checks the deployment: networks, the KMS key, alarms and traces."""

import re
from collections.abc import Iterator

from asya_infra.limits.aws_limits import LAYERS, SECURITY_GROUPS, SUBNETS, Limit
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.deployment_model import VpcSection, region_of_key
from asya_infra.mesh_file.notify_model import ReceiversSection, value_of, written

# Key → prefix of an id, what it is, and how many there may be.
_KEYS: tuple[tuple[str, str, str, Limit], ...] = (
    ("subnets", "subnet", "a subnet", SUBNETS),
    ("security_groups", "sg", "a security group", SECURITY_GROUPS),
)


def check_networks(context: Context) -> Iterator[Finding]:
    """Check the networks of functions and of job runs."""
    mesh = context.mesh
    for place, vpc in ((("vpc",), mesh.vpc), (("spark", "application", "vpc"), mesh.spark.application.vpc)):
        if vpc is not None:
            for location, message in _vpc(vpc):
                yield (*place, *location), message


def _vpc(vpc: VpcSection) -> Iterator[Finding]:
    for key, prefix, what, limit in _KEYS:
        ids: tuple[str, ...] = getattr(vpc, key)
        for index, text in enumerate(ids):
            if not re.fullmatch(rf"{prefix}-[0-9a-f]{{8,17}}", text):
                yield (key, index), f"should be the id of {what} such as {prefix}-0123456789abcdef0; got {text!r}"
            elif text in ids[:index]:
                yield (key, index), f"{text} is listed twice; remove one of them"
        if len(ids) > limit.usable:
            yield (key,), f"has {len(ids)} entries; Lambda and EMR Serverless take {limit.usable} at most"


def check_storage(context: Context) -> Iterator[Finding]:
    """Check that the key is in the region of the mesh. Services use only keys of their own region."""
    key, region = context.mesh.storage.kms_key, context.mesh.region
    if key is not None and region is not None and region_of_key(key) != region:
        yield (
            ("storage", "kms_key"),
            f"is in {region_of_key(key)}, but the mesh is deployed to {region}; use a key of that region, or a replica "
            "of a multi-Region key there",
        )


_PATTERNS = {
    "email": (re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"), "an e-mail address such as ops@example.com"),
    "https": (re.compile(r"https://[^/\s@]+(/\S*)?"), "a URL such as https://events.example.com/alarms"),
}
_TOPIC = re.compile(r"arn:[^:\s]+:sns:[^:\s]+:\d{12}:[A-Za-z0-9_-]{1,256}")


def check_notify(context: Context) -> Iterator[Finding]:
    """Check the receivers and the thresholds of alarms."""
    notify = context.mesh.notify
    for place, receivers in ((("notify",), notify), (("notify", "critical"), notify.critical)):
        yield from (((*place, *location), message) for location, message in _receivers(receivers))
    for threshold in context.registry.thresholds.values():
        value = value_of(notify.thresholds, threshold)
        if value is not None and not threshold.least <= value <= threshold.most:
            got = written(threshold, value)
            yield ("notify", "thresholds", threshold.key), f"should be {threshold.bounds}; got {got}"


def _receivers(notify: ReceiversSection) -> Iterator[Finding]:
    for key, (pattern, expected) in _PATTERNS.items():
        addresses: tuple[str, ...] = getattr(notify, key)
        for index, address in enumerate(addresses):
            if not pattern.fullmatch(address):
                yield (key, index), f"should be {expected}; got {address!r}"
            elif address in addresses[:index]:
                yield (key, index), f"{address!r} is there twice; remove one of them"
    if notify.topic is None:
        return
    if not _TOPIC.fullmatch(notify.topic):
        expected = "the ARN of a standard SNS topic such as arn:aws:sns:eu-central-1:111122223333:alarms"
        yield ("topic",), f"should be {expected}; got {notify.topic!r}"
    if notify.email or notify.https:
        yield ("topic",), "excludes email and https: subscribe them to the topic, or remove the topic"


_URL = re.compile(r"https?://[^/?#\s@]+(/[^?#\s]*)?")
_LAYER = re.compile(r"arn:[^:\s]+:lambda:[^:\s]+:\d{12}:layer:[A-Za-z0-9_-]{1,140}:\d+")


def check_telemetry(context: Context) -> Iterator[Finding]:
    """Check the endpoint and the layer of the collector."""
    telemetry = context.mesh.telemetry
    if telemetry.otlp is not None and not _URL.fullmatch(telemetry.otlp):
        yield ("telemetry", "otlp"), f"should be a URL such as http://collector.example:4318; got {telemetry.otlp!r}"
    elif telemetry.otlp is not None and telemetry.otlp.rstrip("/").endswith("/v1/traces"):
        yield ("telemetry", "otlp"), "should be the base URL, without /v1/traces"
    for index, layer in enumerate(telemetry.collector):
        if not _LAYER.fullmatch(layer):
            expected = "the ARN of a layer version such as arn:aws:lambda:eu-central-1:111122223333:layer:collector:3"
            yield ("telemetry", "collector", index), f"should be {expected}; got {layer!r}"
    most = LAYERS.usable - 1
    if len(telemetry.collector) > most:
        yield (
            ("telemetry", "collector"),
            f"has {len(telemetry.collector)} layers; {most} at most, because a function has {LAYERS.usable} with that of the mesh",
        )
    if telemetry.xray and telemetry.endpoint is not None:
        yield ("telemetry", "xray"), "excludes otlp and collector: let the collector export to X-Ray, or remove it"
    if not telemetry.is_on and "sample" in telemetry.written:
        yield ("telemetry", "sample"), "has no effect without otlp, collector or xray; add one of them"
