"""What a capability declares of its metrics, alarms and graphs, as data (`METRICS`, `ALARMS`, `GRAPHS` in its manifest).

The vocabulary is closed. It has series, five ways to watch them, and five ways to draw them. It has no metric math: what it cannot
say stays a construct. `asya_infra.constructs.observability` makes alarms and dashboards of it. Functions write metrics by name, and
import no declaration; a test compares both.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from string import Formatter
from typing import Literal

from asya.predicates import Predicate, always
from asya.protocol.mesh_table import MeshTable

Severity = Literal["critical", "warning"]
Unit = Literal["Count", "Milliseconds", "Seconds", "Bytes"]
Dimension = Literal["outcome", "kind", "reason", "state"]
Statistic = Literal["Sum", "Maximum", "Minimum", "Average", "SampleCount", "p50", "p95"]

_NAME = r"(\{each\}|\{number\}|[a-z0-9])(-?(\{number\}|[a-z0-9]))*"
_PLACEHOLDERS = ("mesh", "queue", "each", "log", "undone")
SQS = "AWS/SQS"
LAMBDA = "AWS/Lambda"
AWS_METRICS = {
    **dict.fromkeys(
        (
            "ApproximateAgeOfOldestMessage",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesVisible",
            "NumberOfMessagesDeleted",
            "NumberOfMessagesSent",
        ),
        SQS,
    ),
    **dict.fromkeys(("ConcurrentExecutions", "Errors", "Throttles"), LAMBDA),
}
"""The metrics of AWS services that declarations may read, with their namespaces in CloudWatch."""


@dataclass(frozen=True)
class Metric:
    """A metric that functions write. Section 15 of the protocol says what it means.

    Attributes:
        name: Its name in CloudWatch.
        unit: Its unit.
        split: The dimension beside the namespace and the actor.
    """

    name: str
    unit: Unit = "Count"
    split: Dimension | None = None


class Of(Enum):
    """What a series is about, if it is not one actor, function or queue."""

    MESH = "the mesh"
    ACCOUNT = "all functions of the account"
    QUEUES = "each queue; alarms leave out those of reports, which have their own"
    FUNCTIONS = "each function"
    UNQUEUED = "each function without a queue"
    SWEEPS = "each function that a schedule calls"
    ACTORS = "each actor"
    OWN_ACTORS = "each actor of the mesh file"
    CREW = "each actor that the mesh brings along"
    PICKED = "the actor that the page of an actor shows, its queue or its function"
    PICKED_LETTERS = "the dead-letter queue of this actor"


_ABOUT = {
    "": {Of.MESH, Of.ACTORS, Of.OWN_ACTORS, Of.CREW, Of.SWEEPS, Of.PICKED},
    SQS: {Of.QUEUES, Of.PICKED, Of.PICKED_LETTERS},
    LAMBDA: {Of.ACCOUNT, Of.FUNCTIONS, Of.UNQUEUED, Of.PICKED},
}
"""What metrics of functions and of AWS services are about."""
_ONE = {Of.MESH, Of.ACCOUNT}
_EACH = {Of.QUEUES, Of.UNQUEUED, Of.SWEEPS}
"""What alarms tell apart: CloudWatch needs the name of each metric that an alarm reads."""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The value at which an alarm goes off: a key of `notify.thresholds` in the mesh file.

    Attributes:
        key: The key.
        form: Whether the value is a number, a share in percent, or a time in seconds.
        default: The value without the key.
        text: What the value is about, for the schema of the mesh file.
        least, most: Its bounds.
        bounds: What the bounds are and why, for the message about another value.
    """

    key: str
    form: Literal["count", "percent", "age"] = "count"
    default: float = 1
    text: str
    least: float = 0
    most: float = float("inf")
    bounds: str = ""


@dataclass(frozen=True, kw_only=True)
class Series:
    """The values of one metric.

    Attributes:
        metric: Its name: of a declared metric, or of one in `AWS_METRICS`.
        statistic: The statistic of each period.
        of: What it is about. The name of an actor also names its queue or its function, and `{name}-dlq` the dead-letter queue.
        values: Values of the dimension that splits the metric; empty for all. An alarm reads one.
    """

    metric: str
    statistic: Statistic = "Sum"
    of: str | Of = Of.MESH
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        about = _ABOUT[AWS_METRICS.get(self.metric, "")]
        if isinstance(self.of, Of) and self.of not in about:
            known = ", ".join(each.name for each in Of if each in about)
            raise ValueError(f"there is no {self.metric} of {self.of.value}; use the name of an actor, or Of: {known}")


@dataclass(frozen=True)
class Total:
    """The sum of a series over all that it is about. Ten of them have one alarm."""

    series: Series


@dataclass(frozen=True)
class Largest:
    """The highest value of a series among all that it is about. Ten of them have one alarm."""

    series: Series


@dataclass(frozen=True)
class Share:
    """The percentage of one sum of two; 0 while both together are less than a number."""

    part: Series
    rest: Series
    least: int


@dataclass(frozen=True)
class Delay:
    """The seconds that messages wait in a queue, also when SQS leaves them out of its age, and while none is taken."""

    queue: str


@dataclass(frozen=True)
class Silence:
    """The seconds without a value of a series. Each one that it is about has an alarm."""

    series: Series


Watched = Series | Total | Largest | Share | Delay | Silence


def _read(watched: Watched) -> list[tuple[Series, set[Of]]]:
    """Return the series that an alarm reads, each with what it may be about."""
    match watched:
        case Share(part, rest):
            return [(part, _ONE), (rest, _ONE)]
        case Series():
            return [(watched, _ONE)]
        case Delay():
            return []
        case _:
            return [(watched.series, _EACH)]


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """An alarm of the mesh.

    Attributes:
        name: The name without the prefix of the mesh. `{each}` is what the series is about, and `{number}` counts groups of ten.
        says: What happened, and what to do. `{mesh}` is the mesh with its prefix, `{queue}` the queue, `{each}` what the series is
            about, `{log}` the log group of `log`, and `{undone}` what stays undone while a sweep fails.
        graph: The graph of the overview that shows where it happened.
        step: What an operator does first, for the page of alarms: Markdown with links from `docs/reference`.
        log: The function whose log tells more; a sweep's own by default.
        severity: `critical` if the mesh itself does not work, so that somebody must look at once; `warning` if single tasks or
            reports need somebody, who may come tomorrow.
        watched: What the alarm reads.
        threshold: When it goes off.
        at_most: The highest threshold in a mesh, whatever the mesh file says.
        periods: How many periods the alarm looks at, and in how many of them the value must be bad.
        when: Whether a mesh has the alarm.
    """

    name: str
    says: str
    graph: str = ""
    step: str = ""
    log: str = ""
    severity: Severity = "warning"
    watched: Watched
    threshold: Threshold
    at_most: Callable[[MeshTable], float] | None = None
    periods: tuple[int, int] = (1, 1)
    when: Predicate = always

    def __post_init__(self) -> None:
        if re.fullmatch(_NAME, self.name) is None:
            raise ValueError(f"alarm {self.name!r}: use a name such as stuck-runs")
        for series, readable in _read(self.watched):
            if isinstance(series.of, Of) and series.of not in readable:
                raise ValueError(f"alarm {self.name!r}: it cannot read a series of {series.of.value}")
        for _, placeholder, _, _ in Formatter().parse(self.says):
            if placeholder is not None and placeholder not in _PLACEHOLDERS:
                known = ", ".join(_PLACEHOLDERS)
                raise ValueError(f"alarm {self.name!r}: unknown placeholder {{{placeholder}}}; known are {known}")


@dataclass(frozen=True)
class Section:
    """A part of a dashboard.

    Attributes:
        page: The dashboard: that of the mesh, or that of one actor.
        title: Its heading; empty for none.
        at: Its place on the page.
        columns: How many graphs lie side by side; 0 for all.
        when: Whether a mesh has it.
    """

    page: Literal["overview", "actor"]
    title: str
    at: int
    columns: int = 3
    when: Predicate = always


NUMBERS = Section("overview", "", 1, columns=0)
TASKS = Section("overview", "Tasks", 2, columns=4)
ACTORS = Section("overview", "Actors: the ten with the highest values", 3, columns=4)
CREW = Section("overview", "Crew, sets and pauses", 5)
ENVELOPES = Section("actor", "Envelopes", 1)
KINDS = Section("actor", "Job runs, sets, pauses, dead letters and sweeps: actors of these kinds", 3)


@dataclass(frozen=True, kw_only=True)
class Line(Series):
    """A series in a graph, or several: one for each that it is about.

    Attributes:
        drawn: Whether each is shown, the ten highest ones, or one value of all.
        label: The text in the legend. By default the metric, or what tells one line from the others.
        period: Seconds.
    """

    drawn: Literal["each", "top", "MAX", "SUM"] = "each"
    label: str = ""
    period: int = 300


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A graph or a number on a dashboard.

    Attributes:
        section: Where it is. Several capabilities have graphs in one section.
        at: Its place in the section; by default after those with a place.
        title: Its title.
        lines: What it shows.
        number: Whether it shows the latest values as numbers, or the values of the whole time range.
        when: Whether a mesh has it.
    """

    section: Section
    at: int = 100
    title: str
    lines: tuple[Line, ...]
    number: Literal["", "latest", "whole range"] = ""
    when: Predicate = always


def lines(*metrics: str, of: str | Of = Of.MESH, statistic: Statistic = "Sum") -> tuple[Line, ...]:
    """Declare a line for each metric."""
    return tuple(Line(metric=each, of=of, statistic=statistic) for each in metrics)


def statistics(metric: str, *names: Statistic, of: str | Of = Of.MESH) -> tuple[Line, ...]:
    """Declare a line for each statistic of a metric."""
    return tuple(Line(metric=metric, of=of, statistic=each, label=each) for each in names)
