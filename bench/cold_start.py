"""The import time of the sidecar in a fresh process, compared with boto3 and an SQS client; then with handlers of each type.

The processes have the environment of Lambda, and end at once: what an interpreter tears down at its end is no cold start.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from bench.side_by_side import Measurement

GOAL = 1.2
ROUNDS = 25
SIDECAR = "the sidecar's module and its client"
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_LAMBDA_FUNCTION_NAME": "bench",
}
_END = "import os; os._exit(0)"
_CLIENT = "import boto3; boto3.client('sqs')"
_SIDECAR = "import asya.light.lambdas.sidecar; from asya.function.aws import clients; clients.sqs()"
_HELD = "from asya.runtime.signatures import typed"
_TYPED = {
    "and a handler without types": "def handler(payload): return payload",
    "and one with a dataclass": """
from dataclasses import dataclass
from decimal import Decimal
@dataclass
class Order: id: str; total: Decimal; note: str = ""
def handler(order: Order) -> Order: return order""",
    "and one with a msgspec struct": """
import msgspec
class Order(msgspec.Struct): id: str; total: int; note: str = ""
def handler(order: Order) -> Order: return order""",
    "and one with a pydantic model": """
import pydantic
class Order(pydantic.BaseModel): id: str; total: int; note: str = ""
def handler(order: Order) -> Order: return order""",
}


def run() -> list[tuple[str, Measurement, float]]:
    """Measure all in turns; return name, measurement and ratio of each."""
    codes = {"boto3.client('sqs')": _CLIENT, SIDECAR: _SIDECAR}
    codes |= {name: f"{_SIDECAR}\n{_HELD}\n{code}\ntyped('orders.handler', handler)" for name, code in _TYPED.items()}
    calls = {name: partial(_cpu_seconds, code) for name, code in codes.items()}
    for call in calls.values():
        call()  # the first call writes byte code
    turns: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            turns[name].append(call())
    measurements = {name: Measurement(tuple(seconds)) for name, seconds in turns.items()}
    base = next(iter(measurements.values()))
    return [(name, each, each.ratio(base)) for name, each in measurements.items()]


def _cpu_seconds(code: str) -> float:
    """Return the CPU time of a fresh interpreter that runs the code, including its start, without its end."""
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", f"{code}\n{_END}"], _ENVIRONMENT)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"the fresh process failed: {code}")
    return usage.ru_utime + usage.ru_stime
