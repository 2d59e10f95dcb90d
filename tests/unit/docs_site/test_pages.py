"""Tests how links of the repository become links of the site."""

from pathlib import Path

import pytest

from docs_site.pages import MissingTargetError, rewrite_links, site_paths


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path in ("README.md", "app.py", "docs/README.md", "docs/how-to/a.md", "docs/images/b.svg", "docs/c.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("link", "rewritten"),
    [
        ("[index](../README.md#how-to)", "[index](../index.md#how-to)"),
        ("[overview](../../README.md)", "[overview](../project/readme.md)"),
        ("![picture](../images/b.svg)", "![picture](../images/b.svg)"),
        ("[wrapped\ntext](../c.md)", "[wrapped\ntext](../c.md)"),
        ("[`code`](../c.md)", "[`code`](../c.md)"),
        ("[the app](../../app.py)", "the app (`app.py`)"),
        ("[`app.py`](../../app.py)", "`app.py`"),
        ("[here](#heading)", "[here](#heading)"),
        ("[AWS](https://aws.amazon.com/a.md)", "[AWS](https://aws.amazon.com/a.md)"),
        ("`[no](link.md)`", "`[no](link.md)`"),
        ("```text\n[no](link.md)\n```", "```text\n[no](link.md)\n```"),
    ],
)
def test_a_link_is_rewritten(root: Path, link: str, rewritten: str) -> None:
    assert rewrite_links(link, "docs/how-to/a.md", site_paths(root), root) == rewritten


def test_a_link_from_a_page_outside_of_docs_leads_into_the_site(root: Path) -> None:
    assert rewrite_links("[a](docs/how-to/a.md#b)", "README.md", site_paths(root), root) == "[a](../how-to/a.md#b)"


def test_a_link_to_no_file_is_an_error(root: Path) -> None:
    with pytest.raises(MissingTargetError, match=r"docs/c\.md: the link \[d\]\(d\.md\) leads to no file"):
        rewrite_links("[d](d.md)", "docs/c.md", site_paths(root), root)
