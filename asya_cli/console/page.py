"""The built page: where its files are, and their types."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from pathlib import Path

from asya_cli.errors import CommandError
from asya_infra.product.places import BUILD, IS_INSTALLED

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
