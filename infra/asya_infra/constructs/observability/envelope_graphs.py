"""Graphs of the mesh's own metrics (`protocol §15`)."""

from collections.abc import Iterable
from dataclasses import dataclass

from aws_cdk import aws_cloudwatch as cloudwatch
from cdk_monitoring_constructs import CustomMetricGroup

from asya.protocol.mesh_table import MeshTable

METRICS_NAMESPACE = "Asya"
# A dashboard has at most 2,500 metrics. With more actors, the graphs of envelopes would exceed them.
MAX_ACTORS = 80


@dataclass(frozen=True)
class Graph:
    """A graph of one metric, with a line for each actor, or for each value of a dimension."""

    title: str
    metric: str
    statistic: str
    split: str = ""
    values: tuple[str, ...] = ()


ENVELOPES = (
    Graph("Received", "Received", "Sum"),
    Graph("Processed", "Processed", "Sum", "outcome", ("succeeded", "failed", "timed_out", "diverted")),
    Graph("Failed for good", "Failed", "Sum", "reason", ("RuntimeError", "PolicyExhausted", "Timeout")),
    Graph("Sent on", "Sent", "Sum", "kind", ("next", "sink")),
    Graph("Retried", "Retried", "Sum"),
    Graph("Deadline passed", "SlaExpired", "Sum"),
    Graph("Too many hops", "HopLimit", "Sum"),
    Graph("Handler p95 (ms)", "HandlerDuration", "p95"),
    Graph("From sent to received p95 (ms)", "HopLatency", "p95"),
    Graph("Message size p95 (bytes)", "MessageSize", "p95"),
    Graph("In flight, per function", "InFlight", "Maximum"),
    Graph("Progress reports dropped", "ReportsDropped", "Sum"),
)
JOB_RUNS = (
    Graph("Pending envelopes", "PendingEnvelopes", "Maximum"),
    Graph("Job runs", "JobRuns", "Sum", "state", ("started", "success", "failed", "waiting")),
    Graph("Envelopes per run", "EnvelopesPerRun", "Average"),
)
SETS = (Graph("Open sets", "FanInOpen", "Maximum"),)
PAUSES = (Graph("Longest pause (s)", "PausedAge", "Maximum"),)


def envelope_graphs(table: MeshTable) -> dict[str, list[CustomMetricGroup]]:
    """Return the graphs by section, without sections for kinds of actors that the mesh does not have."""
    all_actors = sorted(table.actors)
    sections = {
        "Envelopes": (ENVELOPES, all_actors if len(all_actors) <= MAX_ACTORS else []),
        "Job runs": (JOB_RUNS, _of_kind(table, "spark")),
        "Fan-in": (SETS, _of_kind(table, "fan_in")),
        "Pauses": (PAUSES, _of_kind(table, "pause")),
    }
    return {
        section: [_group(table.namespace, graph, actors) for graph in graphs]
        for section, (graphs, actors) in sections.items()
        if actors
    }


def _of_kind(table: MeshTable, kind: str) -> list[str]:
    return sorted(name for name, actor in table.actors.items() if actor.kind == kind)


def _group(namespace: str, graph: Graph, actors: Iterable[str]) -> CustomMetricGroup:
    return CustomMetricGroup(
        title=graph.title,
        metrics=[
            cloudwatch.Metric(
                namespace=METRICS_NAMESPACE,
                metric_name=graph.metric,
                statistic=graph.statistic,
                label=f"{actor} {value}".rstrip(),
                dimensions_map={"namespace": namespace, "actor": actor, **({graph.split: value} if value else {})},
            )
            for actor in actors
            for value in graph.values or ("",)
        ],
    )
