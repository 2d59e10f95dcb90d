"""Markdown tables."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; cells keep their Markdown, pipes and line breaks are escaped."""
    return [_row(header), "|" + "---|" * len(header), *(_row(row) for row in rows), ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"


def code(text: object) -> str:
    """Return text as inline code; empty text stays empty."""
    return f"`{text}`" if text not in ("", None) else ""
