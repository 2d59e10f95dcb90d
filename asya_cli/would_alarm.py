"""Judges the numbers of actors as the alarms of a mesh do: a mesh that tells nobody (`notify`) has no alarms.

The declarations of the alarms say what they watch, and from which value on. Numbers of one moment show some of them. What only
CloudWatch knows, such as errors of Lambda and silent sweeps, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from asya import registry
from asya.capabilities.operations.mesh_numbers import MINUTES
from asya.monitoring import Largest, Series, Severity, Share
from asya.protocol import names
from asya_cli.output.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from asya.capabilities.operations.mesh_numbers import ActorNumbers
    from asya.monitoring import Alarm, Watched
    from asya_cli.output.console import Console

_STYLES: dict[Severity, str] = {"critical": "red", "warning": "yellow"}


@dataclass(frozen=True, slots=True)
class Raised:
    """An alarm that the numbers would raise.

    Attributes:
        by: The actors with their values.
    """

    alarm: Alarm
    by: Mapping[str, float]

    @property
    def text(self) -> str:
        """What has happened, and where."""
        each = ", ".join(self.by)
        says = self.alarm.says.format(mesh="the mesh", queue=each, each=each, log=each, undone="")
        unit = {"age": " s", "percent": "%", "count": ""}[self.alarm.threshold.form]
        values = ", ".join(f"{actor} {value:,.0f}{unit}" for actor, value in self.by.items())
        name = self.alarm.name.removesuffix("-{number}")
        return f"{says} {name}: {values}; from {self.alarm.threshold.default:,.0f}{unit} on"


def raised(actors: Sequence[ActorNumbers]) -> list[Raised]:
    """Return the alarms that these actors would raise with the default thresholds, critical ones first."""
    found = []
    for alarm in registry.PRODUCT.alarms:
        values = dict(_values(alarm.watched, {actor.name: actor for actor in actors}))
        by = {name: value for name, value in values.items() if value >= alarm.threshold.default}
        if by:
            found.append(Raised(alarm, by))
    return sorted(found, key=lambda each: (each.alarm.severity, each.alarm.name))


def show_raised(console: Console, actors: Sequence[ActorNumbers], indent: str = "") -> None:
    """Print the alarms that these actors would raise, each with its severity."""
    for each in raised(actors):
        severity = each.alarm.severity
        console.print(Text.assemble(indent, (f"{severity:<10}", _STYLES[severity]), one_line(each.text)))


def _values(watched: Watched, actors: Mapping[str, ActorNumbers]) -> Iterator[tuple[str, float]]:
    """Yield what an alarm watches, by actor; nothing if the numbers do not show it."""
    match watched:
        case Series(metric="DeadLetters"):
            yield from ((name, actor.dead_letters) for name, actor in actors.items())
        case Series(metric="NumberOfMessagesSent", of=str(name)) if name in actors:
            yield name, _received(actors[name])
        case Largest(Series(metric="ApproximateAgeOfOldestMessage")):
            yield from ((name, actor.oldest_seconds or 0) for name, actor in actors.items())
        case Share(part=Series(metric="Failed"), least=least) if actors.keys() >= names.END_ACTORS:
            failed, all_ends = _received(actors[names.SUMP]), sum(_received(actors[each]) for each in names.END_ACTORS)
            if all_ends >= least:
                yield names.SUMP, 100 * failed / all_ends
        case _:
            return


def _received(actor: ActorNumbers) -> float:
    """Return the messages of the last minutes, which are a period of an alarm."""
    return (actor.per_minute or 0) * MINUTES
