"""Writes SVG elements with coordinates of one decimal, so that equal input gives equal bytes."""

from collections.abc import Iterable
from html import escape

Number = float

_FONT = "'Amazon Ember', 'Helvetica Neue', Helvetica, Arial, sans-serif"
_WIDTH_OF_A_CHARACTER = 0.55  # of the size of the font, on average


def document(width: Number, height: Number, title: str, elements: Iterable[str]) -> str:
    """Return a document with a title for screen readers."""
    w, h = _text(width), _text(height)
    size = f'viewBox="0 0 {w} {h}" width="{w}" height="{h}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{_FONT}">'
    return "\n".join((head, f"<title>{escape(title)}</title>", *elements, "</svg>")) + "\n"


def rect(
    x: Number, y: Number, width: Number, height: Number, fill: str, *, border: str = "none", round_by: int = 0
) -> str:
    """Return a rectangle."""
    place = f'x="{_text(x)}" y="{_text(y)}" width="{_text(width)}" height="{_text(height)}"'
    corner = f' rx="{round_by}"' if round_by else ""
    return f'<rect {place}{corner} fill="{fill}" stroke="{border}"/>'


def line(x1: Number, y1: Number, x2: Number, y2: Number, color: str) -> str:
    """Return a straight line."""
    return f'<line x1="{_text(x1)}" y1="{_text(y1)}" x2="{_text(x2)}" y2="{_text(y2)}" stroke="{color}"/>'


def polyline(points: Iterable[tuple[Number, Number]], color: str) -> str:
    """Return connected lines."""
    path = " ".join(f"{_text(x)},{_text(y)}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2" stroke-linejoin="round"/>'


def dot(x: Number, y: Number, color: str) -> str:
    """Return a point."""
    return f'<circle cx="{_text(x)}" cy="{_text(y)}" r="2.5" fill="{color}"/>'


def text(
    x: Number,
    y: Number,
    content: str,
    *,
    size: int = 13,
    color: str = "#16191f",
    anchor: str = "start",
    bold: bool = False,
) -> str:
    """Return one line of text; `y` is its base line."""
    weight = ' font-weight="bold"' if bold else ""
    style = f'font-size="{size}" fill="{color}" text-anchor="{anchor}"{weight}'
    return f'<text x="{_text(x)}" y="{_text(y)}" {style}>{escape(content, quote=False)}</text>'


def width_of(content: str, size: int = 13) -> float:
    """Return the width of a text, roughly: the font of the reader is unknown."""
    return len(content) * size * _WIDTH_OF_A_CHARACTER


def shortened(content: str, width: float, size: int = 13) -> str:
    """Return as much of a text as fits into a width."""
    count = int(width / (size * _WIDTH_OF_A_CHARACTER))
    return content if len(content) <= count else content[: max(count - 1, 0)].rstrip() + "…"


def _text(value: Number) -> str:
    return f"{value:.1f}".removesuffix(".0")
