"""What the fault proxy does with a call: which service it is for, which fault it meets, and how an error looks."""

from __future__ import annotations

import json
import random
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

CallFault = Literal["error", "lost call", "lost answer", "delay"]

_CREDENTIAL = re.compile(rb"Credential=[^/]+/\d{8}/[^/]+/([a-z0-9-]+)/aws4_request")
_SENDS = (b"AmazonSQS.SendMessage", b"AmazonSQS.SendMessageBatch")
_FAULTED = frozenset({"s3", "dynamodb", "sqs"})
_WITHIN_OUTAGE: dict[CallFault, float] = {"error": 0.6, "lost call": 0.25, "lost answer": 0.15}
"""The kinds of faults while a service fails."""


@dataclass(frozen=True)
class CallPlan:
    """The faults of calls. Probabilities are 0 to 1; the plan without values has no faults."""

    seed: int = 0
    failing: dict[str, float] = field(default_factory=dict)
    """The share of failing calls by service, while a service fails."""
    error: float = 0.0
    lost_call: float = 0.0
    """Of calls: the connection closes before the call is passed on."""
    lost_answer: float = 0.0
    """Of calls: the call is passed on, and the connection closes without its answer."""
    delay: float = 0.0
    delay_seconds: float = 2.0
    """The longest delay of a delayed call."""
    duplicate: float = 0.0
    """Of SendMessage and SendMessageBatch: the call is passed on twice."""
    late: float = 0.5
    """Of duplicates: the second one comes later."""
    late_seconds: float = 60.0
    """The longest delay of a late duplicate."""

    def write(self, file: Path) -> None:
        """Replace the plan in the file."""
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(file)

    @classmethod
    def read(cls, file: Path) -> CallPlan:
        """Read the plan; without a file there are no faults."""
        return cls(**json.loads(file.read_text())) if file.exists() else cls()


@dataclass(frozen=True)
class Decision:
    """What happens to one call."""

    fault: CallFault | None = None
    delay: float = 0.0
    """Seconds before the call is passed on."""
    duplicates: tuple[float, ...] = ()
    """Seconds after which each further copy is passed on."""


def service_of(head: bytes) -> str:
    """The AWS service that a request is signed for; empty if it is not signed."""
    match = _CREDENTIAL.search(head)
    return match[1].decode() if match else ""


def sends_messages(head: bytes) -> bool:
    """Whether a request sends messages to a queue."""
    target = re.search(rb"^x-amz-target: *(\S+)", head, re.IGNORECASE | re.MULTILINE)
    return target is not None and target[1] in _SENDS


def decide(plan: CallPlan, numbers: random.Random, service: str, *, sends: bool) -> Decision:
    """Decide about one call."""
    if service not in _FAULTED:
        return Decision()
    failing = plan.failing.get(service, 0.0)
    if failing and numbers.random() < failing:
        (fault,) = numbers.choices(list(_WITHIN_OUTAGE), list(_WITHIN_OUTAGE.values()))
        return Decision(fault)
    draw = numbers.random()
    for share, background in ((plan.error, "error"), (plan.lost_call, "lost call"), (plan.lost_answer, "lost answer")):
        if draw < share:
            return Decision(background)  # type: ignore[arg-type]
        draw -= share
    duplicates: tuple[float, ...] = ()
    if sends and numbers.random() < plan.duplicate:
        duplicates = (numbers.uniform(1, plan.late_seconds) if numbers.random() < plan.late else 0.0,)
    if numbers.random() < plan.delay:
        return Decision("delay", numbers.uniform(0, plan.delay_seconds), duplicates)
    return Decision(duplicates=duplicates)


def error_answer(service: str, numbers: random.Random) -> bytes:
    """An answer with an error of a service, as AWS gives it: overloaded, or broken."""
    throttled = numbers.random() < 0.5
    if service == "s3":
        status, code = ("503 Slow Down", "SlowDown") if throttled else ("500 Internal Server Error", "InternalError")
        kind, body = "application/xml", f"<Error><Code>{code}</Code><Message>injected</Message></Error>"
    else:
        name = {
            "dynamodb": ("ProvisionedThroughputExceededException", "InternalServerError"),
            "sqs": ("RequestThrottled", "InternalError"),
        }[service][not throttled]
        status = "400 Bad Request" if throttled else "500 Internal Server Error"
        kind, body = (
            "application/x-amz-json-1.0",
            json.dumps({"__type": f"com.amazonaws#{name}", "message": "injected"}),
        )
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
