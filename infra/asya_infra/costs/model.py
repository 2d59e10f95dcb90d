"""Computes what a mesh costs, from its templates and from counts of calls. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from asya import registry
from asya.capabilities.clock.steps import STEPS, read_steps
from asya.protocol import names
from asya_infra.assembly import Template
from asya_infra.costs import prices
from asya_infra.costs.counts import (
    INDEX_RUN,
    LINES_BYTES,
    MEMORY_GB,
    SWEEP_SECONDS,
    Load,
    Used,
    counts,
)
from asya_infra.costs.prices import Price
from asya_infra.limits.rendering import render

MINUTES = 730 * 60
"""A month."""
MILLION = 1_000_000
_DAYS = 30
_POLLS = 3
"""Long polls of 20 seconds that each poller makes in a minute."""
_POLLERS, _UNLIMITED_POLLERS = 5, 2
"""Pollers of an idle queue: of a mapping with `MaximumConcurrency`, and without.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"""
_LEAST_POLLERS = 2
"""Provisioned pollers, if the mapping names no number."""
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_UNIT_MINUTES = {"minute": 1, "hour": 60, "day": 24 * 60}
_ALARM, _SOURCE, _FUNCTION = "AWS::CloudWatch::Alarm", "AWS::Lambda::EventSourceMapping", "AWS::Lambda::Function"


@dataclass(frozen=True)
class Line:
    """One part of what a mesh costs.

    Attributes:
        part: what is charged.
        calculation: how the quantity comes about.
        quantity: the number of units.
        price: the price of a unit.
    """

    part: str
    calculation: str
    quantity: float
    price: Price

    @property
    def dollars(self) -> float:
        """What the part costs."""
        return self.quantity * self.price.dollars


def total(lines: Iterable[Line]) -> float:
    """Return the dollars of all parts."""
    return sum(line.dollars for line in lines)


def idle(templates: Mapping[str, Template]) -> list[Line]:
    """Return what a mesh costs in a month without an envelope.

    Args:
        templates: the templates by the names of their stacks.
    """
    mesh = _Mesh.of(templates)
    sources = mesh.of_kind(_SOURCE)
    found = [*_polling(sources), *_sweeps(mesh), *_index_runs(mesh), *_kept(mesh), *_alarms(mesh)]
    return [line for line in found if line.quantity]


def idle_actor(templates: Mapping[str, Template], actor: str) -> list[Line]:
    """Return the part of `idle` that one light actor adds: its polling, its alarms, and what sweeps do for it.

    Args:
        templates: the templates by the names of their stacks.
        actor: the name of the actor.
    """
    mesh = _Mesh.of(templates)
    sources = [each for each in mesh.of_kind(_SOURCE) if _queue(each).endswith(f"-{actor}")]
    own = {_queue(each) for each in sources}
    watched = [name for alarm in mesh.of_kind(_ALARM) for name in _alarm_queues(alarm)]
    metrics = sum(name.removesuffix("-dlq") in own for name in watched)
    runs = {name: MINUTES / minutes for name, minutes in mesh.sweeps.items()}
    more = _more(runs, "light", 1)
    found = [
        *_polling(sources),
        Line("Requests of sweeps to SQS", "one a minute", more["sqs requests"], prices.SQS_REQUEST),
        Line("Metrics that alarms read", str(metrics), metrics, prices.ALARM_METRIC),
    ]
    return [line for line in found if line.quantity]


def calls(used: Used, load: Load, *, object_events: bool = False) -> list[Line]:
    """Return what a million hops or tasks cost.

    Args:
        used: what one uses.
        load: how envelopes come.
        object_events: whether the bucket of the mesh sends events of its objects.
    """
    by_function = {name.partition(": ")[2]: count for name, count in used.items() if name.startswith("lambda calls: ")}
    lambda_calls = sum(by_function.values())
    seconds = sum(count * load.seconds(name) for name, count in by_function.items())
    log_bytes = used.get("log bytes", 0) + LINES_BYTES * by_function.get("actor", 0)
    writes = used.get("s3 writes", 0)
    found = [
        _each("Calls of the gateway", used.get("http calls", 0), prices.HTTP_CALL),
        _each("Requests to SQS", used.get("sqs requests", 0), prices.SQS_REQUEST),
        _each("Calls of functions", lambda_calls, prices.LAMBDA_CALL),
        _each("Time of functions, GB-seconds", seconds * MEMORY_GB, prices.LAMBDA_SECOND),
        _each("Write units of DynamoDB", used.get("write units", 0), prices.WRITE_UNIT),
        _each("Read units of DynamoDB", used.get("read units", 0), prices.READ_UNIT),
        _each("Objects written to S3", writes, prices.PUT),
        _each("Objects read from S3", used.get("s3 reads", 0), prices.GET),
        _each("Events of these objects", writes if object_events else 0, prices.OBJECT_EVENT),
        _each("Logs, GB", log_bytes / 1e9, prices.LOG_GB),
    ]
    return [line for line in found if line.quantity]


def sends_object_events(templates: Mapping[str, Template]) -> bool:
    """Return whether the bucket of the mesh sends events of its objects, as `linger` needs."""
    return any(
        "EventBridgeConfiguration" in bucket.get("NotificationConfiguration", {})
        for bucket in _Mesh.of(templates).of_kind("AWS::S3::Bucket")
    )


def change(before: Mapping[str, Template], after: Mapping[str, Template]) -> str:
    """Say what a deployment changes about the costs of an idle mesh, such as `costs +$0.12 a month`."""
    dollars = total(idle(after)) - total(idle(before))
    return f"costs {'-' if round(dollars, 2) < 0 else '+'}${abs(dollars):.2f} a month"


def _each(part: str, count: float, price: Price) -> Line:
    return Line(part, f"{count * MILLION:,.0f}" if count >= 1e-4 else f"{count * MILLION:,.2f}", count * MILLION, price)


@dataclass(frozen=True)
class _Mesh:
    """The resources of all templates.

    Attributes:
        resources: type and properties of each.
        calls: minutes between two calls, of each function that a schedule calls.
        sweeps: minutes between two runs, by the name of the function, or of the step of the clock.
        queues: the numbers of queues with envelopes, of light and heavy actors of the mesh file, and of the mesh itself (`crew`).
        index_runs: whether a schedule sends to x-index each night.
    """

    resources: Sequence[tuple[str, Mapping[str, Any]]]
    calls: Sequence[float]
    sweeps: Mapping[str, float]
    queues: Mapping[str, int]
    index_runs: bool

    @classmethod
    def of(cls, templates: Mapping[str, Template]) -> "_Mesh":
        resources: list[tuple[str, Mapping[str, Any]]] = []
        calls: list[float] = []
        sweeps: dict[str, float] = {}
        kinds: Counter[str] = Counter()
        index_runs = False
        for template in templates.values():
            here = template.get("Resources", {})
            for resource in here.values():
                properties = resource.get("Properties", {})
                resources.append((resource["Type"], properties))
                if resource["Type"] == _SOURCE:
                    kinds[_kind(here, properties)] += 1
                elif "ScheduleExpression" in properties and resource["Type"] == "AWS::Events::Rule":
                    name = _target(here, properties)
                    index_runs |= name == names.INDEX
                    if match := _RATE.fullmatch(properties["ScheduleExpression"]):
                        calls.append(int(match[1]) * _UNIT_MINUTES[match[2]])
                        sweeps |= _runs(here, properties, name, calls[-1])
        return cls(resources, calls, sweeps, kinds, index_runs)

    def of_kind(self, kind: str) -> list[Mapping[str, Any]]:
        return [properties for each, properties in self.resources if each == kind]


def _function(here: Mapping[str, Any], reference: Any) -> Mapping[str, Any]:
    """Return the properties of the function that a property of its stack refers to."""
    (target,) = reference.values() if isinstance(reference, dict) and len(reference) == 1 else (None,)
    logical_id = target[0] if isinstance(target, list) and target else target
    resource = here.get(logical_id, {}) if isinstance(logical_id, str) else {}
    properties: Mapping[str, Any] = resource.get("Properties", {})
    return properties if resource.get("Type") == _FUNCTION else {}


def _variables(function: Mapping[str, Any]) -> Mapping[str, Any]:
    variables: Mapping[str, Any] = function.get("Environment", {}).get("Variables", {})
    return variables


def _actor(function: Mapping[str, Any]) -> str:
    return str(_variables(function).get("ASYA_ACTOR", ""))


def _kind(here: Mapping[str, Any], source: Mapping[str, Any]) -> str:
    """Return whether a queue belongs to a light or a heavy actor of the mesh file, to the mesh itself, or has no envelopes."""
    function = _function(here, source.get("FunctionName"))
    _, is_own, name = _queue(source).partition("-x-")
    if is_own or not _queue(source):
        return "crew" if is_own and f"x-{name}" not in _without_envelopes() else "others"
    heavy = registry.PRODUCT.actor_functions["spark"].entry_point
    return "heavy" if function.get("Handler") == heavy else "light"


@cache
def _without_envelopes() -> frozenset[str]:
    """Return the queues of the mesh's own whose dead letters the DLQ function leaves alone."""
    found = [each for each in registry.PRODUCT.functions.values() if each.queues and not each.queues.has_envelopes]
    return frozenset(queue for each in found if each.queues for queue in each.queues.names or (each.name,))


def _target(here: Mapping[str, Any], rule: Mapping[str, Any]) -> str:
    """Return the name of the function, or of the queue, that a rule calls."""
    [target] = rule["Targets"]
    if function := _function(here, target["Arn"]):
        return _actor(function)
    queue = str(render(target["Arn"])).rpartition(":")[2]
    return names.INDEX if queue.endswith(f"-{names.INDEX}") else queue


def _runs(here: Mapping[str, Any], rule: Mapping[str, Any], name: str, minutes: float) -> dict[str, float]:
    """Return how often what a rule calls runs: the steps of the clock, or the function itself."""
    variables = _variables(_function(here, rule["Targets"][0]["Arn"]))
    if STEPS not in variables:
        return {name: minutes}
    return {step.name: step.minutes for step in read_steps(str(render(variables[STEPS])))}


def _queue(source: Mapping[str, Any]) -> str:
    """Return the name of the queue of an event source; empty for a stream."""
    arn = str(render(source.get("EventSourceArn", "")))
    return arn.rpartition(":")[2] if ":sqs:" in arn else ""


def _polling(sources: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    pollers: Counter[int] = Counter()
    provisioned = 0
    for source in sources:
        if not _queue(source):
            continue  # reading a stream of DynamoDB is free
        if (config := source.get("ProvisionedPollerConfig")) is not None:
            provisioned += int(config.get("MinimumPollers", _LEAST_POLLERS))
        else:
            limited = "MaximumConcurrency" in source.get("ScalingConfig", {})
            pollers[_POLLERS if limited else _UNLIMITED_POLLERS] += 1
    for number, queues in sorted(pollers.items(), reverse=True):
        calculation = f"{queues} × {number} pollers × {_POLLS} a minute"
        quantity = queues * number * _POLLS * MINUTES
        yield Line(f"Lambda polls {_plural(queues, 'queue')}", calculation, quantity, prices.SQS_REQUEST)
    yield Line("Provisioned pollers", f"{provisioned} all the time", provisioned * MINUTES / 60, prices.POLLER_HOUR)


def _more(runs: Mapping[str, float], kind: str, number: int) -> Counter[str]:
    """Return what sweeps use in a month for queues of a kind, or at all (`base`)."""
    used: Counter[str] = Counter()
    for name, times in runs.items():
        for key, count in counts()["sweeps"].get(name, {}).get(kind, {}).items():
            used[key] += count * number * (1 if key == "custom metrics" else times)
    return used


def _sweeps(mesh: _Mesh) -> Iterator[Line]:
    runs = {name: MINUTES / minutes for name, minutes in mesh.sweeps.items()}
    used = _more(runs, "base", 1)
    for kind in ("light", "heavy", "crew"):
        used += _more(runs, kind, mesh.queues[kind])
    every = Counter(mesh.calls)
    often = ", ".join(f"{count} each {_plural(int(minutes), 'minute')}" for minutes, count in sorted(every.items()))
    times, sweeps = sum(MINUTES / minutes for minutes in mesh.calls), sum(runs.values())
    yield Line("Calls of sweeps", often, times, prices.LAMBDA_CALL)
    calculation = f"{sweeps:,.0f} sweeps × {SWEEP_SECONDS} s × {MEMORY_GB} GB"
    yield Line("Time of sweeps", calculation, sweeps * SWEEP_SECONDS * MEMORY_GB, prices.LAMBDA_SECOND)
    for part, key, price in (
        ("Requests of sweeps to SQS", "sqs requests", prices.SQS_REQUEST),
        ("Reads of sweeps", "read units", prices.READ_UNIT),
        ("Writes of sweeps", "write units", prices.WRITE_UNIT),
        ("Listings of sweeps", "s3 writes", prices.PUT),
    ):
        yield Line(part, f"{used[key]:,.0f}", used[key], price)
    logged = used["log bytes"] / 1e9
    yield Line("Logs of sweeps", f"{logged:.2f} GB", logged, prices.LOG_GB)
    functions = (_variables(each) for each in mesh.of_kind(_FUNCTION))
    watched = [variables for variables in functions if "ASYA_HEARTBEATS" in variables]
    heartbeats = sum(len(read_steps(str(render(each[STEPS])))) if STEPS in each else 1 for each in watched)
    # Each value also counts for the mesh.
    metrics = used["custom metrics"] + (heartbeats + 1 if heartbeats else 0)
    yield Line("Metrics that sweeps write", f"{metrics:.0f}", metrics, prices.METRIC)


def _index_runs(mesh: _Mesh) -> Iterator[Line]:
    if mesh.index_runs:
        hours, workers, vcpu, memory = INDEX_RUN
        runs = f"{_DAYS} runs × {hours * 60:.0f} minutes × {workers} workers of {vcpu} vCPU and {memory} GB"
        yield Line("Nightly job run of x-index", runs, _DAYS * hours * workers * vcpu, prices.VCPU_HOUR)
        yield Line("Its memory", runs, _DAYS * hours * workers * memory, prices.SPARK_GB_HOUR)


def _kept(mesh: _Mesh) -> Iterator[Line]:
    keys = len(mesh.of_kind("AWS::KMS::Key"))
    own = {str(queue["KmsMasterKeyId"]) for queue in mesh.of_kind("AWS::SQS::Queue") if "KmsMasterKeyId" in queue}
    yield Line("Keys", str(keys + len(own)), keys + len(own), prices.KEY)
    dashboards = len(mesh.of_kind("AWS::CloudWatch::Dashboard"))
    yield Line("Dashboards", str(dashboards), dashboards, prices.DASHBOARD)
    warm = sum(
        int(alias.get("ProvisionedConcurrencyConfig", {}).get("ProvisionedConcurrentExecutions", 0))
        for alias in mesh.of_kind("AWS::Lambda::Alias")
    )
    seconds = warm * MINUTES * 60 * MEMORY_GB
    yield Line("Provisioned concurrency", f"{warm} × {MEMORY_GB} GB", seconds, prices.PROVISIONED_SECOND)


def _alarms(mesh: _Mesh) -> Iterator[Line]:
    metrics = sum(len(_metrics(alarm)) for alarm in mesh.of_kind(_ALARM))
    yield Line("Metrics that alarms read", str(metrics), metrics, prices.ALARM_METRIC)


def _metrics(alarm: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the metrics that an alarm reads."""
    if "Metrics" not in alarm:
        return [alarm]
    return [each["MetricStat"]["Metric"] for each in alarm["Metrics"] if "MetricStat" in each]


def _alarm_queues(alarm: Mapping[str, Any]) -> Iterator[str]:
    for metric in _metrics(alarm):
        for dimension in metric.get("Dimensions", []):
            if dimension["Name"] == "QueueName":
                yield str(render(dimension["Value"]))


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}s" if number != 1 else noun if noun == "minute" else f"1 {noun}"
