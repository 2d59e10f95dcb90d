"""The files of the built page."""

from __future__ import annotations

from pathlib import Path

import pytest

from asya_cli.console.page import page_folder, read_page
from asya_cli.errors import CommandError


def test_each_file_has_an_address_and_a_type(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    for name in ("index.html", "assets/a.js", "assets/b.css", "icon.svg"):
        (tmp_path / name).write_text(name)
    page = read_page(tmp_path)
    assert {path: file.media_type for path, file in page.items()} == {
        "/": "text/html; charset=utf-8",
        "/assets/a.js": "text/javascript; charset=utf-8",
        "/assets/b.css": "text/css; charset=utf-8",
        "/icon.svg": "image/svg+xml",
    }
    assert page["/"].body == b"index.html"


def test_a_checkout_without_the_page_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="not built") as error:
        read_page(tmp_path)
    assert "make setup" in error.value.advice


def test_the_built_page_has_no_script_in_its_text_and_nothing_from_elsewhere() -> None:
    text = read_page(page_folder())["/"].body.decode()
    assert text.count("<script") == text.count('<script type="module" crossorigin src="/assets/')
    assert "<style" not in text
    assert " on" not in text.partition("<body")[2].lower()
    assert "http" not in text


def test_the_first_load_is_small() -> None:
    import gzip
    import re

    page = read_page(page_folder())
    text = page["/"].body.decode()
    first = ["/", *re.findall(r'(?:src|href)="(/[^"]+)"', text)]
    assert len(first) > 2
    assert sum(len(gzip.compress(page[path].body)) for path in first) <= 300 * 1024
