"""protocol §15: the dashboard shows every metric of the functions with its dimensions."""

import json
import re
from typing import Any

import pytest

from asya.protocol.mesh_table import Actor, MeshTable
from asya_infra.constructs.observability.envelope_graphs import MAX_ACTORS, envelope_graphs

LINE = re.compile(r'\["Asya","(\w+)",((?:"[^"]*",)*)\{')


def lines(mesh: Any) -> list[tuple[str, dict[str, str]]]:
    """The mesh's own metrics on the dashboard, each with its dimensions."""
    body = str(mesh.one("AWS::CloudWatch::Dashboard")["DashboardBody"]).replace('\\"', '"')
    metrics = []
    for name, rest in LINE.findall(body):
        words = json.loads(f"[{rest.rstrip(',')}]")
        metrics.append((name, dict(zip(words[::2], words[1::2], strict=True))))
    return metrics


def test_every_metric_has_a_graph(shop: Any) -> None:
    assert {name for name, _ in lines(shop)} == {
        *("Received", "Processed", "Sent", "Failed", "Retried", "SlaExpired", "HandlerDuration", "HopLatency"),
        *("MessageSize", "InFlight", "HopLimit", "PendingEnvelopes", "JobRuns", "EnvelopesPerRun"),
        *("ReportsDropped", "FanInOpen", "PausedAge"),
    }


@pytest.mark.rule("15.dimensions")
@pytest.mark.parametrize(
    ("metric", "split"), [("Processed", "outcome"), ("Sent", "kind"), ("Failed", "reason"), ("JobRuns", "state")]
)
def test_these_metrics_have_one_more_dimension(shop: Any, metric: str, split: str) -> None:
    metrics = [dimensions for name, dimensions in lines(shop) if name == metric]
    assert metrics
    for dimensions in metrics:
        assert dimensions.keys() == {"namespace", "actor", split}


@pytest.mark.rule("15.dimensions")
def test_the_others_have_namespace_and_actor_only(shop: Any) -> None:
    for name, dimensions in lines(shop):
        assert dimensions["namespace"] == "shop"
        if name not in ("Processed", "Sent", "Failed", "JobRuns"):
            assert dimensions.keys() == {"namespace", "actor"}


def test_only_heavy_actors_have_graphs_of_runs(shop: Any) -> None:
    assert {dimensions["actor"] for name, dimensions in lines(shop) if name == "PendingEnvelopes"} == {
        "crunch",
        "x-index",
    }


def test_a_mesh_without_heavy_actors_has_no_graph_of_runs(plain: Any) -> None:
    assert "JobRuns" not in {name for name, _ in lines(plain)}


def test_a_large_mesh_has_fewer_graphs() -> None:
    actors = {f"a{number}": Actor(kind="handler") for number in range(MAX_ACTORS + 1)}
    assert envelope_graphs(MeshTable(namespace="shop", actors=actors)) == {}
