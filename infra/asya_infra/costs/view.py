"""The costs of a mesh in the form of `asya cost`."""

from collections.abc import Mapping, Sequence

import msgspec

from asya_infra.assembly import Template
from asya_infra.costs import model, prices
from asya_infra.costs.counts import LOADS, counts

HOP, SILENT, TASK = "hop", "hop without reports", "task"


class Part(msgspec.Struct, frozen=True):
    """One part of a sum.

    Attributes:
        price: the list price, such as `$0.40 per million requests`.
    """

    service: str
    part: str
    calculation: str
    price: str
    dollars: float


class Sum(msgspec.Struct, frozen=True):
    """What something costs, with its parts.

    Attributes:
        of: what costs that, such as `a million hops in batches of ten`.
    """

    of: str
    dollars: float
    parts: tuple[Part, ...]


class Costs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The costs of a mesh by list prices, in dollars.

    Attributes:
        prices: the region and the date of the prices.
        idle: a month without an envelope.
        calls: a million hops and tasks of light actors; empty if they are not asked for.
    """

    namespace: str
    prices: str
    idle: Sum
    calls: tuple[Sum, ...] = ()


def costs_of(namespace: str, templates: Mapping[str, Template], *, only_idle: bool) -> Costs:
    """Return the costs of a synthesized mesh.

    Args:
        namespace: the namespace of the mesh.
        templates: the templates by the names of their stacks.
        only_idle: whether to leave out hops and tasks.
    """
    events = model.sends_object_events(templates)
    each = (
        []
        if only_idle
        else [
            _sum(
                f"a million {what.replace('hop', 'hops').replace('task', 'tasks')}, {load.name}",
                model.calls(counts()["loads"][load.name][what], load, object_events=events),
            )
            for what in (HOP, SILENT, TASK)
            for load in LOADS
        ]
    )
    lines = model.idle(templates)
    lines.sort(key=lambda line: (line.price.service, -line.dollars))
    return Costs(
        namespace,
        f"list prices of {prices.REGION}, {prices.DATE}",
        _sum("a month without an envelope", lines),
        tuple(each),
    )


def _sum(of: str, lines: Sequence[model.Line]) -> Sum:
    parts = [
        Part(line.price.service, line.part, line.calculation, line.price.text, round(line.dollars, 4)) for line in lines
    ]
    return Sum(of, round(model.total(lines), 4), tuple(parts))
