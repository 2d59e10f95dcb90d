"""Collects the pages of the site and rewrites their links.

A link to a page of the site stays a link. A link to another file of the repository becomes its path as text: the site
stands alone, and the repository may have no public address.
"""

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

from docs_site.markdown import outside_code
from docs_site.navigation import Page

PROJECT_PAGES = (
    Page("Overview", "README.md"),
    Page("Contributing", "CONTRIBUTING.md"),
    Page("Security policy", "SECURITY.md"),
    Page("Changelog", "CHANGELOG.md"),
)
"""Pages in the root of the repository; the site has them in its folder `project`."""

# A code span, or a link: what looks like a link inside of code is none.
_LINK = re.compile(r"`[^`]+`|(!?)\[((?:[^\[\]`]|`[^`]*`)*)\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")


class MissingTargetError(Exception):
    """A page links to a file that does not exist."""


def site_paths(root: Path) -> dict[str, str]:
    """Return the path in the site of each page and picture, by its path in the repository."""
    docs = root / "docs"
    paths = {
        path.relative_to(root).as_posix(): path.relative_to(docs).as_posix().replace("README.md", "index.md")
        for path in sorted(docs.rglob("*"))
        if path.is_file()
    }
    return paths | {page.path: f"project/{page.path.lower()}" for page in PROJECT_PAGES if (root / page.path).is_file()}


def rewrite_links(text: str, source: str, paths: Mapping[str, str], root: Path) -> str:
    """Rewrite the relative links of a page.

    Args:
        source: the path of the page in the repository.
        paths: the paths in the site, from `site_paths`.

    Raises:
        MissingTargetError: a link leads to no file of the repository.
    """

    def rewrite(link: re.Match[str]) -> str:
        kind, label, target, fragment = link[1], link[2], link[3], link[4] or ""
        if not target:  # code, or a link within the page
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in paths:
            to = posixpath.relpath(paths[path], posixpath.dirname(paths[source]) or ".")
            return f"{kind}[{label}]({to}{fragment})"
        if not (root / path).exists():
            raise MissingTargetError(f"{source}: the link [{label}]({target}) leads to no file; correct its path")
        return label if label.strip("`") == path else f"{label} (`{path}`)"

    # A link may wrap: whole runs of lines outside of code blocks are rewritten at once.
    parts: list[tuple[list[str], bool]] = []
    for line, in_code in outside_code(text):
        if not parts or parts[-1][1] != in_code:
            parts.append(([], in_code))
        parts[-1][0].append(line)
    return "\n".join("\n".join(lines) if in_code else _LINK.sub(rewrite, "\n".join(lines)) for lines, in_code in parts)
