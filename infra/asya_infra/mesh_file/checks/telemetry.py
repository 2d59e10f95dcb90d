"""Checks where the spans of traces go."""

import re
from collections.abc import Iterator

from asya_infra.mesh_file.checks.context import Context, Finding

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
    if telemetry.xray and telemetry.endpoint is not None:
        yield ("telemetry", "xray"), "excludes otlp and collector: let the collector export to X-Ray, or remove it"
    if not telemetry.is_on and "sample" in telemetry.written:
        yield ("telemetry", "sample"), "has no effect without otlp, collector or xray; add one of them"
