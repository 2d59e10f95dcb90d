"""Writes everything that the site generator reads into one folder."""

import json
import posixpath
import shutil
from pathlib import Path

from docs_site.pages import (
    PROJECT_PAGES,
    Page,
    Sections,
    as_toml,
    convert,
    outside_code,
    read_index,
    rewrite_links,
    site_paths,
)
from docs_site.reference import PAGES

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("functions", "spark_jobs")
"""The folders of the packages in the Python API."""
DIAGRAMS = "mermaid.tiny.js"
SCRIPTS = {
    DIAGRAMS: "@mermaid-js/tiny/dist/mermaid.tiny.js",
    "iframe-worker.js": "iframe-worker/shim/index.js",
}
"""Scripts that the site serves itself, by their paths in `node_modules` of `.venv-docs`."""


def prepare(folder: Path, root: Path = ROOT) -> None:
    """Write the pages, the generated reference, the scripts and the settings.

    Raises:
        MissingTargetError: a page links to a file that does not exist.
    """
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    for path, text in page_texts(root).items():
        (pages / path).parent.mkdir(parents=True, exist_ok=True)
        (pages / path).write_text(text, encoding="utf-8")
    for source, path in site_paths(root).items():
        if not source.endswith(".md"):
            (pages / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / source, pages / path)
    (pages / "scripts").mkdir()
    for name, module in SCRIPTS.items():
        shutil.copyfile(root / ".venv-docs" / "node_modules" / module, pages / "scripts" / name)
    (pages / "styles").mkdir()
    shutil.copyfile(Path(__file__).with_name("site.css"), pages / "styles" / "site.css")
    (folder / "zensical.toml").write_text(settings(root), encoding="utf-8")


def page_texts(root: Path = ROOT) -> dict[str, str]:
    """Return the Markdown of each page by its path in the site: the written ones, then the generated ones."""
    paths = site_paths(root)
    texts = {
        path: convert(rewrite_links((root / source).read_text(encoding="utf-8"), source, paths, root))
        for source, path in paths.items()
        if source.endswith(".md")
    }
    texts |= {page.path: convert(page.text()) for page in PAGES}
    return {path: _with_diagrams(text, path) for path, text in texts.items()}


def _with_diagrams(text: str, path: str) -> str:
    """Load the script of diagrams on a page that has one: three megabytes, and before the theme asks for its own copy."""
    if not any(is_code and line.lstrip().startswith("```mermaid") for line, is_code in outside_code(text)):
        return text
    script = posixpath.relpath(f"scripts/{DIAGRAMS}", posixpath.dirname(path) or ".")
    return f'{text}\n<script src="{script}"></script>\n'


def navigation(root: Path = ROOT) -> Sections:
    """Return the sections of the site: those of `docs/README.md`, with the generated pages and the decisions."""
    sections = read_index((root / "docs" / "README.md").read_text(encoding="utf-8"))
    sections["Reference"] = [*sections["Reference"], *(Page(page.title, page.path) for page in PAGES)]
    decisions = read_index("## Decisions\n" + (root / "docs" / "decisions" / "README.md").read_text(encoding="utf-8"))
    sections["Decisions"] = [
        Page("All decisions", "decisions/index.md"),
        *(
            Page(_title(root / "docs" / "decisions" / page.path), f"decisions/{page.path}")
            for pages in decisions.values()
            for page in pages
        ),
        Page("Template", "decisions/template.md"),
    ]
    sections["Explanation"] = [page for page in sections["Explanation"] if page.path != "decisions/index.md"]
    sections["Project"] = [Page(page.title, f"project/{page.path.lower()}") for page in PROJECT_PAGES]
    return sections


def settings(root: Path = ROOT) -> str:
    """Return the settings of the site generator."""
    text = Path(__file__).with_name("zensical.toml").read_text(encoding="utf-8")
    folders = json.dumps([str(root / folder) for folder in SOURCES])
    return text.replace('"@NAVIGATION@"', as_toml(navigation(root))).replace('"@SOURCES@"', folders)


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
