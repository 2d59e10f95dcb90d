"""Words with one meaning: each stands in the modules of that meaning alone (docs/reference/glossary.md)."""

import re
from collections.abc import Iterator

import pytest

from tests.paths import PROJECT

GLOSSARY = PROJECT / "docs" / "reference" / "glossary.md"
# The words, where each may stand as a regular expression of paths, and what of other libraries is left out.
WORDS = {
    "callback": (
        r"asya/(capabilities/pauses|gateway/callbacks|protocol/(events|pause|mesh_table|task_merge)|testing/(external|run))"
        r"|asya/(predicates|tasks/received_reports|gateway/(manifest|lambdas/(api|openapi)))"
        r"|asya_infra/(constructs|mesh_file)|asya_local/dev/resources|asya_cli/tasks/report",
        r"callback=not_empty|app\.callback|command\.callback|stack\.callback",
    ),
    "slot": (
        r"(capabilities|gateway)/triggers|triggers\.py|asya_cli/(backfill|local|tasks/report)|asya/client/triggers"
        r"|asya/protocol/task|asya/tasks/resolution|asya/testing/(external|mesh|virtual_time)"
        r"|asya/gateway/(manifest|lambdas/(api|wiring))|asya_cli/triggers|mesh_file/(checks/triggers|forms)",
        r"slots=True|__slots__",
    ),
    "host": (
        r"asya/(capabilities/(a2a|mcp)|gateway|sidecar/lambdas/services|tasks/reporting|client/connection|contracts)"
        r"|asya/(protocol/(mesh_keys|mesh_table|table_keys)|testing/(isolation|services)|capabilities/pauses/shown)"
        r"|asya_infra/(imports|mesh_file|notes|permissions)|asya_local/(authentication|ministack|servers)"
        r"|asya_cli/console",
        r"localhost|spark\.driver\.host",
    ),
    "operation": (
        r"",
        r"[oO]perations|OPERATIONS|operation_(name|model)|OperationModel|operationId|(Unknown|Invalid|Unsupported)Operation"
        r"|UNSUPPORTED_OPERATION",
    ),
}


def lines(pattern: str, elsewhere: str) -> Iterator[tuple[str, str]]:
    """The lines of the product that a pattern finds, without what belongs to other libraries."""
    for folder in ("functions", "infra", "spark_jobs", "asya_cli"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            for line in path.read_text(encoding="utf-8").splitlines():
                if re.search(pattern, re.sub(elsewhere, "", line), re.IGNORECASE):
                    yield path.relative_to(PROJECT).as_posix(), line.strip()


@pytest.mark.parametrize("word", WORDS)
def test_a_word_has_one_meaning(word: str) -> None:
    own, elsewhere = WORDS[word]
    strays = [(path, line) for path, line in lines(word, elsewhere) if not own or not re.search(own, path)]
    assert strays == [], f"{word!r} has another meaning in docs/reference/glossary.md"


@pytest.mark.parametrize("word", [*WORDS, "wait"])
def test_the_glossary_says_which(word: str) -> None:
    avoided = GLOSSARY.read_text(encoding="utf-8").split("## Words to avoid", 1)[1]
    assert re.search(rf"\| {word} \(", avoided)
