"""Tests what the check of the built site finds."""

from pathlib import Path

import pytest

from docs_site.check import problems

PAGE = (
    '<h1 id="top">A</h1><a href="b.html#b">b</a><a href="https://example.com">c</a><img src="data:image/png;base64,">'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in ("pages/a.md", "pages/b.md", "site/a.html", "site/b.html", "site/404.html"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "site" / "b.html").write_text('<h2 id="b">B</h2>')
    return tmp_path


def test_a_whole_site_has_no_problems(folder: Path) -> None:
    (folder / "site" / "a.html").write_text(PAGE)
    assert problems(folder) == []


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="c.html">', "the link c.html leads to no file"),
        ('<a href="b.html#c">', "the link b.html#c leads to no heading"),
        ('<a href="#c">', "the link #c leads to no heading"),
        ('<img src="c.png">', "the link c.png leads to no file"),
        ('<script src="https://unpkg.com/a.js">', "loads https://unpkg.com/a.js from elsewhere"),
        ('<link rel="stylesheet" href="//fonts.example/a.css">', "loads //fonts.example/a.css from elsewhere"),
        ('<pre class="mermaid">', "has a diagram and does not load scripts/mermaid.tiny.js"),
    ],
)
def test_a_wrong_page_is_a_problem(folder: Path, html: str, problem: str) -> None:
    (folder / "site" / "a.html").write_text(html)
    assert problems(folder) == [f"a.html: {problem}"]


def test_a_page_that_was_not_built_is_a_problem(folder: Path) -> None:
    (folder / "site" / "b.html").unlink()
    assert problems(folder) == ["b.html: the page is missing in the site"]
