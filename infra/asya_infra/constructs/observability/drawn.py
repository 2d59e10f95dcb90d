"""Draws the declared graphs of a dashboard."""

from collections.abc import Iterable
from itertools import groupby
from typing import Literal

from asya import registry
from asya.monitoring import Graph, Line, Metric, Of
from asya.protocol import names
from asya_infra.constructs.observability import widgets
from asya_infra.constructs.observability.series import actor_of, members, own_metric, source
from asya_infra.constructs.observability.widgets import WIDTH, Page, Search, Widget
from asya_infra.mesh import Mesh


def draw(page: Page, mesh: Mesh, name: Literal["overview", "actor"]) -> None:
    """Add the sections of a dashboard with their graphs, those of the capabilities that the mesh file names included."""
    declared = [
        each
        for each in registry.of(mesh.table).graphs
        if each.section.page == name and each.section.when(mesh.table, "") and each.when(mesh.table, "")
    ]
    for section, found in groupby(declared, key=lambda each: each.section):
        if section.title:
            page.section(section.title)
        graphs = list(found)
        columns = section.columns or len(graphs)
        for start in range(0, len(graphs), columns):
            page.row(*(_widget(mesh, each, WIDTH // columns) for each in graphs[start : start + columns]))


def _widget(mesh: Mesh, graph: Graph, width: int) -> Widget:
    lines = [_line(mesh, each) for each in graph.lines]
    if graph.number:
        return widgets.number(graph.title, lines, width=width, whole_range=graph.number == "whole range")
    return widgets.graph(graph.title, lines, width=width)


def _line(mesh: Mesh, line: Line) -> widgets.Line:
    metric = own_metric(mesh, line.metric)
    is_split = metric is not None and metric.split is not None and line.of is not Of.MESH
    if not is_split and (line.of in (Of.MESH, Of.ACCOUNT) or actor_of(line.of)):
        one = source(mesh, line, line.of)
        dimensions = [word for pair in one.dimensions.items() for word in pair]
        return widgets.Line(
            metric=(one.namespace, one.metric, *dimensions), statistic=line.statistic, label=line.label or line.metric
        )
    if metric is None:
        return _listed(mesh, line)
    search = _search(mesh, line, metric)
    expression = str(search)
    if line.drawn == "top":
        expression = search.top()
    elif line.drawn != "each":
        expression = f"{line.drawn}({search})"
    return widgets.Line(expression=expression, label=line.label or _label(search, line.of))


def _listed(mesh: Mesh, line: Line) -> widgets.Line:
    """Return the line of a metric of all queues or functions, each by its name."""
    sources = [source(mesh, line, each) for each in members(mesh, line.of)]
    [dimension] = sources[0].dimensions
    return widgets.Line(
        expression="SORT({listed}, MAX, DESC, 10)" if line.drawn == "top" else f"{line.drawn}({{listed}})",
        label=line.label or f"${{PROP('Dim.{dimension}')}}",
        statistic=line.statistic,
        listed=tuple((each.namespace, each.metric, dimension, each.dimensions[dimension]) for each in sources),
        period=line.period,
    )


def _search(mesh: Mesh, line: Line, metric: Metric) -> Search:
    split = [metric.split] if metric.split is not None else []
    values = [_any_of(metric.split, line.values)] if metric.split is not None and line.values else []
    return Search(
        schema=(names.METRICS_NAMESPACE, "namespace", "actor", *split),
        metric=line.metric,
        terms=(f'namespace="{mesh.namespace}"', *_actors(mesh, line.of), *values),
        statistic=line.statistic,
        period=line.period,
    )


def _actors(mesh: Mesh, of: str | Of) -> tuple[str, ...]:
    """Return the terms that find the actors."""
    own_queues = registry.of(mesh.table).own_queues
    actor = actor_of(of)
    if actor is not None:
        return (f'actor="{actor}"',)
    match of:
        case Of.ACTORS:
            return ()
        case Of.OWN_ACTORS:
            return tuple(f'NOT actor="{name}"' for name in own_queues)
        case Of.CREW:
            return (_any_of("actor", own_queues),)
        case Of.SWEEPS:
            return (_any_of("actor", registry.sweeps_of(mesh.table)),)
    raise ValueError(f"a graph cannot find the metrics of {of}")


def _any_of(dimension: str, values: Iterable[str]) -> str:
    terms = " OR ".join(f'{dimension}="{value}"' for value in values)
    return f"({terms})"


def _label(search: Search, of: str | Of) -> str:
    """Return a dynamic label with what tells one line from the others."""
    dimensions = [each for each in search.schema[1:] if each != "namespace" and not (each == "actor" and actor_of(of))]
    return " ".join(f"${{PROP('Dim.{each}')}}" for each in dimensions)
