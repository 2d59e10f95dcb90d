"""The file that opens the console: for this user alone, and gone afterwards."""

from __future__ import annotations

import os
import stat

import pytest

from asya_cli.console.page import page_address, redirect_file


def mode_of(path: os.PathLike[str]) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_only_this_user_can_read_the_file_and_list_its_folder() -> None:
    before = os.umask(0)
    try:
        with redirect_file("http://127.0.0.1:4711/#secret=abc") as path:
            assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
    finally:
        os.umask(before)


def test_the_file_leads_to_the_page_without_a_script() -> None:
    with redirect_file(page_address(4711, "abc")) as path:
        text = path.read_text()
    assert 'content="0; url=http://127.0.0.1:4711/#secret=abc"' in text
    assert "<script" not in text


def test_the_file_is_removed_with_its_folder_also_after_an_error() -> None:
    with pytest.raises(KeyboardInterrupt), redirect_file("http://127.0.0.1:4711/") as path:
        raise KeyboardInterrupt
    assert not path.parent.exists()


def test_the_address_is_text_and_no_markup() -> None:
    with redirect_file('http://127.0.0.1/#"><script>') as path:
        assert "<script" not in path.read_text()
