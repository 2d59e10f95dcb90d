"""Checks numbers against each other and against the limits of AWS."""

import math
from collections.abc import Iterator

from asya_infra import timings
from asya_infra.limits.aws_limits import LOG_DAYS
from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.mesh_model import RetentionSection
from asya_infra.mesh_file.units import format_duration

_DAY = 86400
_VARIABLES_LIMIT = 3000  # of Lambda's 4 KB; the mesh's own variables need the rest
_BODY_LIMIT = 10 * 1024 * 1024
_SMALL_BATCH = 10  # a larger batch of SQS needs a window
_LIGHT_WINDOW = 300  # the limit of an event source mapping
# A message may stay in its queue and then in the dead-letter queue before its payload is needed.
_MIN_PAYLOAD_DAYS = timings.QUEUE_RETENTION_DAYS + timings.DLQ_RETENTION_DAYS


def check_limits(context: Context) -> Iterator[Finding]:
    """Check numbers against each other and against the limits of AWS."""
    for name, actor in context.mesh.actors.items():
        for location, message in _actor(actor):
            yield ("actors", name, *location), message
    yield from _retention(context.mesh.storage.retention)
    if not 1024 <= context.mesh.gateway.max_body <= _BODY_LIMIT:
        yield ("gateway", "max_body"), "should be from 1k to 10m; API Gateway accepts no larger body"


def _actor(actor: ActorSection) -> Iterator[Finding]:
    if actor.pollers is not None:
        if "concurrency" in actor.written:
            yield ("concurrency",), "conflicts with pollers: Lambda takes one of them; remove this key"
        if actor.pollers.min > actor.pollers.max:
            yield ("pollers", "min"), f"is more than max ({actor.pollers.max})"
    elif actor.reserved is not None and actor.reserved < actor.concurrency:
        yield (
            ("reserved",),
            f"is less than concurrency ({actor.concurrency}), so messages would use up receives; set both to the same",
        )
    size = sum(len(name) + len(value) for name, value in actor.env.items())
    if size > _VARIABLES_LIMIT:
        yield ("env",), f"has {size} characters; at most {_VARIABLES_LIMIT} fit into Lambda's 4 KB"
    if actor.spark is None:
        yield from _light(actor)


def _light(actor: ActorSection) -> Iterator[Finding]:
    needed = timings.function_timeout(actor.timeout, actor.batch.size)
    if needed > timings.FUNCTION_TIMEOUT_LIMIT:
        most = math.floor((timings.FUNCTION_TIMEOUT_LIMIT - timings.MARGIN) / actor.timeout)
        advice = (
            f"set batch.size to {most} or less, or shorten the timeout" if most else "make it a heavy actor (spark)"
        )
        yield (
            ("timeout",),
            f"{format_duration(actor.timeout)} × a batch of {actor.batch.size} + {timings.MARGIN}s margin = {needed}s, "
            f"but the limit of Lambda is {timings.FUNCTION_TIMEOUT_LIMIT}s; {advice}",
        )
    if actor.batch.size > _SMALL_BATCH and actor.batch.window < 1:
        yield ("batch",), f"a size of {actor.batch.size} (more than {_SMALL_BATCH}) needs a window of 1s or more"
    if actor.batch.window > _LIGHT_WINDOW:
        yield ("batch", "window"), f"should be at most {_LIGHT_WINDOW}s for a light actor"
    elif not actor.batch.window.is_integer():
        yield ("batch", "window"), "should be whole seconds for a light actor"


def _retention(retention: RetentionSection) -> Iterator[Finding]:
    for key in ("tasks", "payloads", "runs", "results"):
        seconds: float | None = getattr(retention, key)
        if seconds is not None and (seconds < _DAY or seconds % _DAY):
            yield ("storage", "retention", key), "should be whole days, such as 30d"
    if retention.logs not in {days * _DAY for days in LOG_DAYS}:
        days = ", ".join(map(str, LOG_DAYS))
        yield ("storage", "retention", "logs"), f"should be a number of days that CloudWatch offers: {days}"
    if retention.payloads < _MIN_PAYLOAD_DAYS * _DAY:
        yield (
            ("storage", "retention", "payloads"),
            f"should be at least {_MIN_PAYLOAD_DAYS}d: a message with a claim check may stay "
            f"{timings.QUEUE_RETENTION_DAYS}d in a queue and {timings.DLQ_RETENTION_DAYS}d in a dead-letter queue",
        )
