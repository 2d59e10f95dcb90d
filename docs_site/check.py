"""Checks the built site: each page is there, each link of it leads somewhere, and no page loads from elsewhere."""

import posixpath
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
}


class _Page(HTMLParser):
    """Collects the links, the loaded files and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.has_diagram = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        self.has_diagram |= tag == "pre" and "mermaid" in attributes.get("class", "").split()
        for name, value in attributes.items():
            if (tag, name) in _LOADED and attributes.get("rel") != "canonical":
                self.loads.append(value)
            elif tag == "a" and name == "href":
                self.links.append(value)


def problems(folder: Path) -> list[str]:
    """Return what is wrong with the site in `folder/site`, one line each."""
    site = folder / "site"
    expected = {
        path.relative_to(folder / "pages").with_suffix(".html").as_posix() for path in (folder / "pages").rglob("*.md")
    }
    found = [f"{page}: the page is missing in the site" for page in sorted(expected) if not (site / page).is_file()]
    for path in sorted(site.rglob("*.html")):
        found += _problems_of(path, site)
    return found


def _problems_of(path: Path, site: Path) -> Iterator[str]:
    page, name = _read(path), path.relative_to(site).as_posix()
    # The page for unknown addresses is served under any address: its links are absolute.
    if name == "404.html":
        return
    # Without the script of the site, the theme would load one from elsewhere.
    if page.has_diagram and not any(load.endswith("/mermaid.tiny.js") for load in page.loads):
        yield f"{name}: has a diagram and does not load scripts/mermaid.tiny.js"
    for target in dict.fromkeys((*page.loads, *page.links)):
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            if target in page.loads and parts.scheme != "data":
                yield f"{name}: loads {target} from elsewhere"
            continue
        file = site / posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)) or ".")
        file = path if not parts.path else file / "index.html" if file.is_dir() else file
        if not file.is_file():
            yield f"{name}: the link {target} leads to no file"
        elif parts.fragment and file.suffix == ".html" and unquote(parts.fragment) not in _read(file).anchors:
            yield f"{name}: the link {target} leads to no heading"


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page
