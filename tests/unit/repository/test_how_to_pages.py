"""The snippets of how-to pages are projects: their mesh files are valid, and their tests pass.

`tests/spark` and `tests/infra` run the pages that need Java or a synthesis.
"""

import re
from pathlib import Path

import pytest

from asya_infra.mesh_file import load_mesh
from tests.doubles.snippets import run_all_tests, write_project
from tests.paths import PROJECT

PAGES = (
    "start-by-a-webhook.md",
    "pass-large-data.md",
    "retry-and-protect.md",
    "replay-after-a-bug.md",
    "call-from-an-agent.md",
    "design-routes-and-payloads.md",
    "move-from-step-functions.md",
    "move-from-lambda-and-sqs.md",
    "start-on-objects-and-events.md",
)
# Their further snippets show single keys.
PAGES_WITH_PARTS = (
    "move-from-airflow.md",
    "avoid-overlapping-runs.md",
    "backfill.md",
    "fan-out-and-fan-in.md",
    "pause-and-resume.md",
    "start-on-a-schedule.md",
    "use-secrets.md",
    "wait-for-a-time.md",
)
HOW_TO = PROJECT / "docs" / "how-to"
OPENING = re.compile(r"^```(?:python|yaml)\n(.*)$", re.MULTILINE)


@pytest.mark.slow
def test_the_tests_of_each_page_pass(tmp_path: Path) -> None:
    folders = {page: tmp_path / page.removesuffix(".md") for page in (*PAGES, *PAGES_WITH_PARTS)}
    counts = {page: write_project(page, folder) for page, folder in folders.items()}
    output = run_all_tests(*folders.values())
    assert re.findall(r"^(\d+) passed", output, re.MULTILINE) == [str(count) for count in counts.values()]
    assert min(counts.values()) > 0


@pytest.mark.parametrize("page", PAGES)
def test_every_snippet_is_a_file_and_every_mesh_file_is_valid(page: str, tmp_path: Path) -> None:
    write_project(page, tmp_path)
    openings = OPENING.findall((HOW_TO / page).read_text())
    assert [line for line in openings if not re.fullmatch(r"# \S+\.(?:py|yaml|yml)", line)] == []
    assert load_mesh(tmp_path / "mesh.yaml").mesh.actors
