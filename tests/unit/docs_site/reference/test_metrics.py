"""Tests that the page has each metric with its dimension and meaning."""

from docs_site.reference.metrics import meanings, metrics, page
from tests.unit.repository.test_public_names import METRICS


def test_each_metric_has_its_dimensions() -> None:
    assert {name: metric.dimensions for name, metric in metrics().items()} == METRICS | {"HopLimit": set()}


def test_each_metric_has_a_rule_of_the_protocol() -> None:
    assert set(metrics()) - set(meanings()) == set()


def test_each_metric_has_a_row() -> None:
    text = page()
    assert [name for name in METRICS if f"\n| `{name}` |" not in text] == []
    assert "| `HandlerDuration` | Milliseconds |" in text
