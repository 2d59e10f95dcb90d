"""The declared metrics and alarms: functions write what is declared, and the protocol has the same."""

import re
from collections import Counter

import pytest

from asya import registry
from asya.monitoring import AWS_METRICS, Alarm, Metric, Series, Threshold
from docs_site.reference.metrics import written
from tests.paths import PROJECT

METRICS = registry.PRODUCT.metrics
ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| (\w+) \| (?:`(\w+)`)? ?\|", re.MULTILINE)


@pytest.mark.rule("15.dimensions")
@pytest.mark.slow
def test_functions_write_the_declared_metrics() -> None:
    found = {name: (metric.units, metric.splits) for name, metric in written().items()}
    assert found == {
        name: ({metric.unit}, {metric.split} if metric.split else set()) for name, metric in METRICS.items()
    }


def test_the_protocol_has_the_declared_metrics() -> None:
    section = (PROJECT / "docs" / "protocol.md").read_text().partition("## 15. Metrics")[2].partition("\n## ")[0]
    table = {
        name: Metric(name, unit, split or None)  # type: ignore[arg-type]
        for names, unit, split in ROW.findall(section)
        for name in re.findall(r"\w+", names)
    }
    assert table == METRICS
    assert set(re.findall(r"\*\*§15\.([A-Z]\w+)\*\*", section)) == METRICS.keys()


def test_no_two_declarations_have_one_name() -> None:
    metrics = [each.name for capability in registry.PRODUCT.capabilities for each in capability.metrics]
    alarms = [each.name for each in registry.PRODUCT.alarms]
    names = Counter([*metrics, *alarms, *AWS_METRICS])
    assert [name for name, count in names.items() if count > 1] == []


def test_alarms_with_one_key_have_one_threshold() -> None:
    keys = {each.threshold.key: each.threshold for each in registry.PRODUCT.alarms}
    assert all(each.threshold is keys[each.threshold.key] for each in registry.PRODUCT.alarms)


def test_a_text_has_known_placeholders_alone() -> None:
    with pytest.raises(
        ValueError, match=r"alarm 'late': unknown placeholder \{actor\}; known are mesh, queue, each, log, undone"
    ):
        Alarm(
            name="late",
            says="{actor} is late.",
            watched=Series(metric="Received"),
            threshold=Threshold(key="late", text="Late."),
        )
