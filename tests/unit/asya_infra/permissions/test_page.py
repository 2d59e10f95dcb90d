"""The page of permissions is written from the manifests."""

from asya import registry
from asya_infra.permissions import page


def test_the_committed_page_is_current() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.as_page(), "run `python -m asya_infra.permissions.page`"


def test_it_has_every_function_and_every_kind() -> None:
    headings = {line for line in page.as_page().splitlines() if line.startswith("### ")}
    assert headings == {f"### {name}" for name in (*registry.PRODUCT.functions, *registry.PRODUCT.steps)} | {
        f"### Kind `{kind}`" for kind in registry.PRODUCT.actor_functions
    }
