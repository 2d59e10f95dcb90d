"""The built page: where its files are, their types, and how it opens in the browser.

Other users of the machine do not learn the secret of the console.
"""

from __future__ import annotations

import mimetypes
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from asya_cli.errors import CommandError
from asya_infra.product.places import BUILD, IS_INSTALLED

if TYPE_CHECKING:
    from collections.abc import Iterator

_INDEX = "index.html"
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page, with its media type."""

    media_type: str
    body: bytes


def page_folder() -> Path:
    """Return the folder of the built page: within the installed package, or in `.build` of a checkout."""
    return Path(__file__).parent / "page" if IS_INSTALLED else BUILD / "console"


def read_page(folder: Path) -> dict[str, PageFile]:
    """Read all files of the page, by the path of their address.

    Raises:
        CommandError: The page is not built.
    """
    files = {
        f"/{path.relative_to(folder).as_posix()}": PageFile(_media_type(path), path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    index = files.pop(f"/{_INDEX}", None)
    if index is None:
        raise CommandError(
            f"the console is not built: {folder / _INDEX} does not exist", "Run `make setup` in the checkout."
        )
    return {"/": index, **files}


def _media_type(path: Path) -> str:
    known = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"{known}; charset=utf-8" if known.startswith("text/") else known


_FILE = "open-console.html"
_REDIRECT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>The Asya console</title>
<p><a href="{address}">Open the console</a></p>
</html>
"""


def page_address(port: int, secret: str) -> str:
    """Return the address of the page, with the secret in its fragment."""
    return f"http://127.0.0.1:{port}/#secret={secret}"


@contextmanager
def redirect_file(address: str) -> Iterator[Path]:
    """Write a file that leads a browser to an address. Only this user can read it, and it is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="asya-console-"))  # mode 0700
    try:
        path = folder / _FILE
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(_REDIRECT.format(address=escape(address, quote=True)))
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)
