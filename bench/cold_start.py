"""What loading the sidecar costs a fresh process, against what any function that speaks to SQS pays: boto3 and a client."""

from __future__ import annotations

import os
import sys
from functools import partial

from bench.side_by_side import Measured

GOAL = 1.3
ROUNDS = 25
SIDECAR = "the sidecar's module and its client"
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
}
_CLIENT = "import boto3; boto3.client('sqs')"
_SIDECAR = "from asya.messaging.aws import clients; import asya.sidecar.lambdas.wiring; clients.sqs()"


def run() -> list[tuple[str, Measured, float]]:
    """Measure, in turns; name, result and ratio for each way."""
    ways = {"boto3.client('sqs')": _CLIENT, SIDECAR: _SIDECAR}
    calls = {name: partial(_processor_seconds, code) for name, code in ways.items()}
    for call in calls.values():
        call()  # the first time, byte code is written
    turns: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            turns[name].append(call())
    measured = {name: Measured(tuple(some)) for name, some in turns.items()}
    base = next(iter(measured.values()))
    return [(name, one, one.ratio(base)) for name, one in measured.items()]


def _processor_seconds(code: str) -> float:
    """What a fresh interpreter takes for this, its own start included."""
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code], _ENVIRONMENT)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"the fresh process failed: {code}")
    return usage.ru_utime + usage.ru_stime
