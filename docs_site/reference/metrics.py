"""The page of all CloudWatch metrics: unit and dimension from the manifests, meaning from the protocol."""

import ast
import re
from dataclasses import dataclass, field

from asya import registry
from asya.protocol.names import METRICS_NAMESPACE
from docs_site.reference.source import ROOT, calls, modules, texts
from docs_site.reference.tables import code, table

INTRODUCTION = f"""\
# Metrics

Every metric that the functions of a mesh write, in the CloudWatch namespace `{METRICS_NAMESPACE}`. Each has the dimensions
`namespace` and `actor`, and counts once more for `namespace` alone; some have one dimension more.
[Section 15 of the protocol](../../protocol.md#15-metrics) lists the values of these dimensions,
[Watch a mesh](../../how-to/watch-a-mesh.md) the alarms and dashboards.
"""
_RULE = re.compile(r"^- \*\*§15\.(\w+)\*\* — (.*(?:\n  .*)*)", re.MULTILINE)


@dataclass
class Written:
    """A metric, as the calls in the source write it."""

    units: set[str] = field(default_factory=set)
    splits: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)


class UnreadableCallError(Exception):
    """A call writes a metric or a log entry whose name the source does not tell."""


def written() -> dict[str, Written]:
    """Return the metrics that functions write, by name.

    Raises:
        UnreadableCallError: the name of a metric is neither a literal nor a value of a table of its module.
    """
    found: dict[str, Written] = {}
    for path, tree in modules():
        for call in calls(tree):
            if not _writes_metric(call):
                continue
            names = texts(call.args[0], tree)
            if not names:
                raise UnreadableCallError(
                    f"{path}:{call.lineno}: name the metric in this call, or in a table of the module"
                )
            for name in names:
                metric = found.setdefault(name, Written())
                metric.sources.add(path)
                metric.units.add(_unit(call))
                metric.splits |= {_dimension(each.value) for each in call.keywords if each.arg == "by"}
    return found


def _writes_metric(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in ("count", "measure")
        and ast.unparse(function.value).rpartition(".")[2] == "telemetry"
        and bool(call.args)
    )


def _unit(call: ast.Call) -> str:
    is_measurement = isinstance(call.func, ast.Attribute) and call.func.attr == "measure"
    return str(ast.literal_eval(call.args[2])) if is_measurement else "Count"


def _dimension(value: ast.expr) -> str:
    if isinstance(value, ast.Tuple) and isinstance(value.elts[0], ast.Constant):
        return str(value.elts[0].value)
    raise UnreadableCallError(f"line {value.lineno}: name the dimension in this call: {ast.unparse(value)}")


def meanings() -> dict[str, str]:
    """Return the rule of the protocol for each metric."""
    protocol = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    return {name: " ".join(text.split()) for name, text in _RULE.findall(protocol)}


def page() -> str:
    """Write the page."""
    rules, writers = meanings(), written()
    rows = (
        (
            code(metric.name),
            metric.unit,
            code(metric.split) if metric.split else "",
            rules.get(metric.name, ""),
            "<br>".join(code(source) for source in sorted(writers[metric.name].sources)),
        )
        for _, metric in sorted(registry.PRODUCT.metrics.items())
    )
    return "\n".join([INTRODUCTION, *table(("metric", "unit", "further dimension", "meaning", "written in"), rows)])
