"""The pages name no dollars but those of the cost model, and what other services cost."""

import re
from pathlib import Path

import pytest

from asya_infra.costs import prices
from asya_infra.costs.counts import FULL, LINES_BYTES, SINGLE, counts
from asya_infra.costs.view import HOP, SILENT
from docs_site.reference.costs import PAGE, dollars_of
from docs_site.reference.tables import with_written
from tests.paths import PROJECT

DOCS = PROJECT / "docs"
_DOLLARS = re.compile(r"\$\d[\d,]*(?:\.\d+)?")
_FURTHER = re.search(r"each further one (\$[\d.]+)\.", PAGE.read_text())
_WORKER = prices.VCPU_HOUR.dollars + 3 * prices.SPARK_GB_HOUR.dollars
_RUN = 3 * 3 / 60 * _WORKER
_HOPS = f"${dollars_of(HOP, FULL):.0f}", f"${dollars_of(HOP, SINGLE):.0f}"
_REPORTS = [f"${dollars_of(HOP, load) - dollars_of(SILENT, load):.2f}" for load in (FULL, SINGLE)]
_LOG_GB = (counts()["loads"][SINGLE.name][SILENT]["log bytes"] + LINES_BYTES) * 1e6 / 1e9
_METRICS = counts()["loads"][FULL.name][HOP]["custom metrics"]
_CALLS = 130e6
_OTHERS = {"$25": "a million transitions of Step Functions", "$0.40": "a secret", "$0.05": "10,000 reads of secrets"}

FIGURES = {
    "explanation/heavy-actors.md": [f"${_WORKER:.2f}", "$0.015"],  # the second one is an assumption
    "explanation/when-to-take-something-else.md": ["$25", *_HOPS, _FURTHER and _FURTHER[1]],
    "how-to/design-routes-and-payloads.md": [*_HOPS],
    "how-to/encrypt-with-your-key.md": [f"${prices.KEY.dollars:.0f}", f"${prices.KEY_REQUEST.dollars * 1e4:.2f}"],
    "how-to/going-to-production.md": [f"${_RUN:.4f}", f"${_RUN * 1e4:.0f}", f"${_RUN * 1e3:.2f}"],
    "how-to/move-from-lambda-and-sqs.md": _REPORTS,
    "how-to/start-by-a-webhook.md": [
        "$200",
        f"${_CALLS * prices.HTTP_CALL.dollars:.0f}",
        f"${_CALLS * prices.LAMBDA_CALL.dollars:.0f}",
        "$10",  # 12 ms of each call
        "$40",  # 600 bytes of each call
    ],
    "how-to/use-secrets.md": ["$0.40", "$0.05"],
    "how-to/watch-a-mesh.md": [
        f"${prices.ALARM_METRIC.dollars:.2f}",
        f"${prices.METRIC.dollars:.2f}",
        f"${prices.DASHBOARD.dollars:.2f}",
        f"${prices.KEY.dollars:.2f}",
        f"${100 * _METRICS * prices.METRIC.dollars:.0f}",
        f"${_LOG_GB * prices.LOG_GB.dollars:.2f}",
        "$0.005",  # what Logs Insights reads
    ],
    "reference/gateway.md": ["$0.01"],  # a thousand metrics that are read
    "reference/mesh-file.md": [f"${prices.POLLER_HOUR.dollars:g}"],
}


def pages() -> list[Path]:
    """All pages but the decisions, which tell what was so when they were made."""
    return [page for page in sorted(DOCS.rglob("*.md")) if "decisions" not in page.parts] + [PROJECT / "README.md"]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_dollars_of_a_page_are_those_of_the_model(page: Path) -> None:
    text = page.read_text()
    own = with_written(text, []) if page == PAGE else text
    assert _DOLLARS.findall(own) == FIGURES.get(str(page.relative_to(PROJECT)).removeprefix("docs/"), [])


def test_a_handler_of_a_list_price_is_told_with_its_page() -> None:
    assert all(each.source.startswith("https://aws.amazon.com/") for each in prices.ALL)


def test_the_page_about_performance_has_the_dollars_of_a_hop() -> None:
    [row] = re.findall(
        r"^\| dollars per million hops.*$", (DOCS / "explanation/performance.md").read_text(), re.MULTILINE
    )
    assert row.split("|")[3].strip() == f"{dollars_of(HOP, FULL):.2f}"
