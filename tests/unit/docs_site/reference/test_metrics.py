"""Tests that the page has each metric with its dimension and meaning."""

from asya import registry
from docs_site.reference.metrics import meanings, page


def test_each_metric_has_a_rule_of_the_protocol() -> None:
    assert registry.PRODUCT.metrics.keys() - meanings().keys() == set()


def test_each_metric_has_a_row() -> None:
    text = page()
    assert [name for name in registry.PRODUCT.metrics if f"\n| `{name}` |" not in text] == []
    assert "| `HandlerDuration` | Milliseconds |" in text
    assert "| `Failed` | Count | `reason` |" in text
