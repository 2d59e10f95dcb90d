"""Tests that the site has every page of the repository, in its navigation too."""

import tomllib

import pytest

from docs_site.prepare import ROOT, navigation, page_texts, settings


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return page_texts()


def test_the_navigation_has_every_page_once(texts: dict[str, str]) -> None:
    paths = [page.path for pages in navigation().values() for page in pages]
    assert sorted([*paths, "index.md"]) == sorted(texts)


def test_every_page_of_docs_is_in_the_site(texts: dict[str, str]) -> None:
    docs = ROOT / "docs"
    written = {path.relative_to(docs).as_posix().replace("README.md", "index.md") for path in docs.rglob("*.md")}
    assert written <= set(texts)


@pytest.mark.slow
def test_the_pages_are_the_same_each_time(texts: dict[str, str]) -> None:
    assert page_texts() == texts


def test_only_pages_with_diagrams_load_their_script(texts: dict[str, str]) -> None:
    assert texts["explanation/architecture.md"].endswith('\n<script src="../scripts/mermaid.tiny.js"></script>\n')
    assert "<script" not in texts["reference/glossary.md"]


def test_the_settings_load_no_fonts_and_know_the_navigation() -> None:
    project = tomllib.loads(settings())["project"]
    assert project["theme"]["font"] is False
    assert project["nav"][0] == {"Start": "index.md"}
    assert project["plugins"]["offline"] == {}
