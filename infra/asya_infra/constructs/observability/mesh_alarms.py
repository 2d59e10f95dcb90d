"""Makes the alarms of a mesh from their declarations: one for each concern, whatever the number of actors, and one for ten queues.

An alarm cannot watch a SEARCH, and SQS has no metric for all queues of a mesh. `docs/decisions/alarms.md` weighs the ways.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from asya import monitoring, registry
from asya.monitoring import Delay, Largest, Of, Series, Share, Silence, Total
from asya.protocol import names
from asya_infra.constructs.observability.alarms import (
    MAX_METRICS,
    PERIOD,
    Alarm,
    MetricSource,
    queue_metric,
)
from asya_infra.constructs.observability.series import members, source
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.notify_model import value_of


def mesh_alarms(mesh: Mesh) -> list[Alarm]:
    """Return the alarms of a mesh; none if it tells nobody."""
    if not mesh.file.notify.tells_somebody:
        return []
    return [
        alarm
        for declared in registry.of(mesh.table).alarms
        if declared.when(mesh.table, declared.name)
        for alarm in _alarms(mesh, declared)
    ]


def _alarms(mesh: Mesh, declared: monitoring.Alarm) -> Iterator[Alarm]:
    """Yield what becomes of a declaration: one alarm, or one for each group or sweep; none if the mesh file removes it."""
    threshold = value_of(mesh.file.notify.thresholds, declared.threshold)
    if threshold is None:
        return
    if declared.at_most is not None:
        threshold = min(threshold, declared.at_most(mesh.table))
    maker = _Maker(mesh, declared, threshold)
    match declared.watched:
        case Series() as series:
            yield maker.plain(series)
        case Total(series):
            yield from maker.groups(series, "SUM")
        case Largest(series):
            yield from maker.groups(series, "MAX")
        case Share() as share:
            yield maker.share(share)
        case Delay(queue):
            yield maker.delay(queue)
        case Silence(series):
            yield from maker.silences(series)


@dataclass(frozen=True)
class _Maker:
    mesh: Mesh
    declared: monitoring.Alarm
    threshold: float

    def plain(self, series: Series) -> Alarm:
        return self._alarm((source(self.mesh, series, series.of),), self._text(of=series.of))

    def groups(self, series: Series, function: str) -> Iterator[Alarm]:
        about = members(self.mesh, series.of)
        for number, start in enumerate(range(0, len(about), MAX_METRICS), start=1):
            group = about[start : start + MAX_METRICS]
            metrics = ", ".join(f"m{index}" for index in range(len(group)))
            yield self._alarm(
                tuple(source(self.mesh, series, each) for each in group),
                self._text(each=", ".join(group)),
                name=self._name_of_group(number),
                expression=f"{function}([{metrics}])",
            )

    def share(self, share: Share) -> Alarm:
        sources = (source(self.mesh, share.part, share.part.of), source(self.mesh, share.rest, share.rest.of))
        # SUM over an array ignores a metric without data; m0 / (m0 + m1) would have no value if nothing succeeds.
        expression = f"IF(SUM([m0, m1]) >= {share.least}, 100 * m0 / SUM([m0, m1]), 0)"
        return self._alarm(sources, self._text(), expression=expression)

    def delay(self, queue: str) -> Alarm:
        """Watch the age of the oldest message.

        SQS leaves a message that was received three times out of this age. After some minutes of an outage no message counts. So
        a queue also counts as late if it holds messages and deletes none within a period.
        """
        name = names.queue_name(self.mesh.namespace, queue)
        sources = (
            queue_metric(name, "ApproximateAgeOfOldestMessage", "Maximum"),
            queue_metric(name, "ApproximateNumberOfMessagesVisible", "Minimum"),
            queue_metric(name, "ApproximateNumberOfMessagesNotVisible", "Minimum"),
            queue_metric(name, "NumberOfMessagesDeleted", "Sum"),
        )
        # MAX over an array ignores a metric without data.
        expression = f"MAX([m0, IF(m3 == 0 AND m1 + m2 > 0, {self.threshold:.0f}, 0)])"
        return self._alarm(sources, self._text(of=queue), expression=expression)

    def silences(self, series: Series) -> Iterator[Alarm]:
        periods = math.ceil(self.threshold / PERIOD)
        for each in members(self.mesh, series.of):
            yield Alarm(
                name=self.declared.name.format(each=each),
                description=self._text(each=each, log=self.declared.log or each),
                sources=(source(self.mesh, series, each),),
                threshold=1,
                periods=(periods, periods),
                needs_data=True,
                severity=self.declared.severity,
            )

    def _alarm(
        self, sources: tuple[MetricSource, ...], description: str, *, name: str = "", expression: str = ""
    ) -> Alarm:
        return Alarm(
            name=name or self.declared.name,
            description=description,
            sources=sources,
            expression=expression,
            threshold=self.threshold,
            periods=self.declared.periods,
            severity=self.declared.severity,
        )

    def _name_of_group(self, number: int) -> str:
        if "{number}" in self.declared.name:
            return self.declared.name.format(number=number)
        # A deployed alarm keeps its name when the mesh gets more than ten of these.
        return self.declared.name if number == 1 else f"{self.declared.name}-{number}"

    def _text(self, *, of: str | Of = Of.MESH, each: str = "", log: str = "") -> str:
        mesh = self.mesh
        sweep = registry.sweeps_of(mesh.table).get(each)
        log = log or self.declared.log
        text = self.declared.says.format(
            mesh=f"asya-{mesh.namespace}",
            queue=names.queue_name(mesh.namespace, of) if isinstance(of, str) else "",
            each=each,
            log=mesh.addresses.log_place(log) if log else "",
            undone=sweep.undone(mesh.table) if sweep is not None else "",
        )
        text = f"{self.declared.severity.capitalize()}: {text}"
        graph = self.declared.graph if mesh.file.telemetry.dashboards else ""
        return f"{text} See '{graph}' on the dashboard asya-{mesh.namespace}." if graph else text
