"""The page of senders is written from the manifests."""

from asya import registry
from asya_infra.permissions import statements_page as page


def test_the_committed_page_is_current() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.as_page(), "run `python -m asya_infra.permissions.statements_page`"


def test_it_has_every_function_with_a_queue_and_every_kind() -> None:
    headings = {line for line in page.as_page().splitlines() if line.startswith("## ")}
    functions = {f"## {name}" for name, each in registry.PRODUCT.functions.items() if each.queues is not None}
    assert headings == functions | {f"## Kind `{kind}`" for kind in registry.PRODUCT.actor_functions}
