"""The dashboard of a mesh, and the alarm for envelopes at x-sump."""

from dataclasses import dataclass

from aws_cdk import aws_cloudwatch as cloudwatch
from cdk_monitoring_constructs import (
    CustomMetricGroup,
    DefaultDashboardFactory,
    MonitoringFacade,
)
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.observability.envelope_graphs import envelope_graphs
from asya_infra.mesh import Mesh
from asya_infra.permissions.spark import heavy_actors


@dataclass(frozen=True)
class _Source:
    """A source of metrics: the queue or the function of an actor."""

    actor: str
    namespace: str
    dimension: str
    name: str


class Monitoring(Construct):
    """The dashboard, with a line per actor in each graph."""

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, "Monitoring")
        self._namespace = mesh.namespace
        heavy = bool(heavy_actors(mesh.table))
        system = [names.DISPATCH, names.COMPLETION] if heavy else []
        system += [names.PUSH] if mesh.table.tools else []
        actors = [*sorted(mesh.table.actors), *system]
        name = f"asya-{mesh.namespace}-{mesh.addresses.region}"  # dashboards are global to an account
        facade = MonitoringFacade(
            self,
            "Facade",
            dashboard_factory=DefaultDashboardFactory(self, "Dashboards", dashboard_name_prefix=name),
        )
        facade.add_large_header(f"Mesh {mesh.namespace}")
        facade.monitor_custom(
            human_readable_name="Queues",
            alarm_friendly_name="Queues",
            metric_groups=[
                self._group("Waiting messages", "ApproximateNumberOfMessagesVisible", "Maximum", self._queues(actors)),
                self._group("Oldest message (s)", "ApproximateAgeOfOldestMessage", "Maximum", self._queues(actors)),
                self._group("Dead letters", "ApproximateNumberOfMessagesVisible", "Maximum", self._dlqs(actors)),
            ],
        )
        gateway = (
            names.GATEWAY_INGEST,
            names.GATEWAY_API,
            names.GATEWAY_STREAM,
            *([names.PUSH_FEED] if mesh.table.tools else []),
        )
        functions = self._functions([*actors, *([names.RECONCILE] if heavy else []), names.DLQ, *gateway])
        facade.monitor_custom(
            human_readable_name="Functions",
            alarm_friendly_name="Functions",
            metric_groups=[
                self._group("Errors", "Errors", "Sum", functions),
                self._group("Duration p95 (ms)", "Duration", "p95", functions),
                self._group("At once", "ConcurrentExecutions", "Maximum", functions),
            ],
        )
        for section, graphs in envelope_graphs(mesh.table).items():
            facade.monitor_custom(human_readable_name=section, alarm_friendly_name=section, metric_groups=graphs)
        self._sump_alarm()

    def _queues(self, actors: list[str]) -> list[_Source]:
        return [_Source(a, "AWS/SQS", "QueueName", names.queue_name(self._namespace, a)) for a in actors]

    def _dlqs(self, actors: list[str]) -> list[_Source]:
        return [_Source(a, "AWS/SQS", "QueueName", names.dlq_name(self._namespace, a)) for a in actors]

    def _functions(self, actors: list[str]) -> list[_Source]:
        return [_Source(a, "AWS/Lambda", "FunctionName", names.function_name(self._namespace, a)) for a in actors]

    @staticmethod
    def _group(title: str, metric: str, statistic: str, sources: list[_Source]) -> CustomMetricGroup:
        return CustomMetricGroup(
            title=title,
            metrics=[
                cloudwatch.Metric(
                    namespace=source.namespace,
                    metric_name=metric,
                    statistic=statistic,
                    label=source.actor,
                    dimensions_map={source.dimension: source.name},
                )
                for source in sources
            ],
        )

    def _sump_alarm(self) -> None:
        queue = names.queue_name(self._namespace, names.SUMP)
        cloudwatch.CfnAlarm(
            self,
            "SumpAlarm",
            alarm_name=queue,
            alarm_description="Envelopes have failed for good: x-sump logs each one and keeps a copy under sump/.",
            namespace="AWS/SQS",
            metric_name="NumberOfMessagesSent",
            dimensions=[{"name": "QueueName", "value": queue}],
            statistic="Sum",
            period=60,
            evaluation_periods=1,
            threshold=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
        )
