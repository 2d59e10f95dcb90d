"""The costs and the size of a mesh in the form of `asya cost`."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from asya_infra.assembly import Template
from asya_infra.costs import model, prices
from asya_infra.costs.counts import LOADS, counts

HOP, SILENT, TASK, BARE = "hop", "hop without reports", "task", "task without an object"


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


class Size(msgspec.Struct, frozen=True):
    """How many stacks a mesh has, and how many resources they have.

    Attributes:
        queues: with dead-letter queues.
    """

    stacks: int
    resources: int
    functions: int
    queues: int

    @property
    def text(self) -> str:
        """The numbers in words."""
        counts = zip(("stack", "resource", "function", "queue"), msgspec.structs.astuple(self), strict=True)
        return ", ".join(f"{number} {what}{'' if number == 1 else 's'}" for what, number in counts)


class Costs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The costs of a mesh by list prices, in dollars, and its size.

    Attributes:
        prices: the region and the date of the prices.
        idle: a month without an envelope.
        calls: a million hops and tasks of light actors; empty if they are not asked for.
    """

    namespace: str
    prices: str
    size: Size
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
            for what in (HOP, SILENT, TASK, BARE)
            for load in LOADS
        ]
    )
    lines = model.idle(templates)
    lines.sort(key=lambda line: (line.price.service, -line.dollars))
    return Costs(
        namespace,
        f"list prices of {prices.REGION}, {prices.DATE}",
        size_of(templates.values()),
        _sum("a month without an envelope", lines),
        tuple(each),
    )


def size_of(templates: Collection[Template]) -> Size:
    """Return the size of a mesh with these templates."""
    kinds = Counter(each["Type"] for template in templates for each in template["Resources"].values())
    return Size(len(templates), kinds.total(), kinds["AWS::Lambda::Function"], kinds["AWS::SQS::Queue"])


def _sum(of: str, lines: Sequence[model.Line]) -> Sum:
    parts = [
        Part(line.price.service, line.part, line.calculation, line.price.text, round(line.dollars, 4)) for line in lines
    ]
    return Sum(of, round(model.total(lines), 4), tuple(parts))
