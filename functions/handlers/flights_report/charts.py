"""Charts as inline SVG. Colors come from the style sheet of the page, so they follow its light or dark theme."""

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import NamedTuple

Values = Sequence[float | None]

WIDTH, HEIGHT = 760, 300
SMALL_WIDTH = 340  # of a chart in a group of small ones
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 16, 28  # margins around the plot


class Frame(NamedTuple):
    """The plot's coordinates: `columns` places from left to right, values from `low` to `high` upwards."""

    columns: int
    low: float
    high: float
    width: int = WIDTH

    @property
    def column(self) -> float:
        """The width of one column."""
        return (self.width - LEFT - RIGHT) / max(self.columns, 1)

    def x(self, place: float) -> float:
        """The horizontal position of a place, counted in columns."""
        return LEFT + place * self.column

    def y(self, value: float) -> float:
        """The vertical position of a value."""
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - value) / (self.high - self.low)


def columns(labels: Sequence[str], series: dict[str, Values]) -> str:
    """Draw columns, one group per label."""
    width = 0.76 / len(series)

    def draw(frame: Frame) -> Iterator[str]:
        for number, (name, values) in enumerate(series.items()):
            for place, value in enumerate(values):
                if value is not None:
                    top, base = sorted((frame.y(value), frame.y(0)))
                    left = frame.x(place + 0.12 + number * width)
                    yield (
                        f'<rect class="fill-{number}" x="{left:.1f}" y="{top:.1f}" width="{frame.column * width - 1:.1f}" '
                        f'height="{base - top:.1f}" rx="2">{_hint(labels[place], name, value)}</rect>'
                    )

    return _chart(labels, series, draw)


def lines(labels: Sequence[str], series: dict[str, Values]) -> str:
    """Draw one line with points per series; a missing value is a gap."""

    def draw(frame: Frame) -> Iterator[str]:
        for number, (name, values) in enumerate(series.items()):
            at = {p: (frame.x(p + 0.5), frame.y(v)) for p, v in enumerate(values) if v is not None}
            path = " ".join(f"{'L' if p - 1 in at else 'M'}{x:.1f},{y:.1f}" for p, (x, y) in at.items())
            yield f'<path class="line-{number % 6}" d="{path}"/>'
            for place, (x, y) in at.items():
                hint = _hint(labels[place], name, values[place] or 0)
                yield f'<circle class="fill-{number % 6}" cx="{x:.1f}" cy="{y:.1f}" r="4">{hint}</circle>'

    return _chart(labels, series, draw)


def multiples(labels: Sequence[str], series: dict[str, Values]) -> str:
    """Draw one small chart per series, all on one scale. A dashed line shows the mean of all series."""
    ticks = _ticks([value for values in series.values() for value in values if value is not None])
    frame = Frame(len(labels), ticks[0], ticks[-1], SMALL_WIDTH)
    means = [_mean([values[place] for values in series.values()]) for place in range(len(labels))]
    sparse = [label if place % 4 == 0 else "" for place, label in enumerate(labels)]
    charts = []
    for number, (name, values) in enumerate(series.items()):
        bars = "".join(
            f'<rect class="fill-{number % 6}" x="{frame.x(place + 0.15):.1f}" y="{min(frame.y(value), frame.y(0)):.1f}" '
            f'width="{frame.column * 0.7:.1f}" height="{abs(frame.y(value) - frame.y(0)):.1f}" rx="1.5">'
            f"{_hint(labels[place], name, value)}</rect>"
            for place, value in enumerate(values)
            if value is not None
        )
        points = [(frame.x(place + 0.5), frame.y(mean)) for place, mean in enumerate(means) if mean is not None]
        path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in points) if points else ""
        charts.append(
            f'<figure><figcaption>{escape(name)}</figcaption><svg viewBox="0 0 {SMALL_WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(name)}">{"".join(_axes(frame, sparse, ticks))}{bars}'
            f'<path class="mean" d="{path}"/></svg></figure>'
        )
    return f'<div class="multiples">{"".join(charts)}</div>'


def _mean(values: Values) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _chart(labels: Sequence[str], series: dict[str, Values], draw: Callable[[Frame], Iterator[str]]) -> str:
    ticks = _ticks([value for values in series.values() for value in values if value is not None])
    frame = Frame(len(labels), ticks[0], ticks[-1])
    legend = "".join(f'<span><i class="fill-{n % 6}"></i>{escape(name)}</span>' for n, name in enumerate(series))
    parts = [*_axes(frame, labels, ticks), *draw(frame)]
    return (
        f'<div class="legend">{legend}</div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(", ".join(series))}">'
        f"{''.join(parts)}</svg>"
    )


def _axes(frame: Frame, labels: Sequence[str], ticks: Sequence[float]) -> Iterator[str]:
    for tick in ticks:
        kind, y = "grid" if tick else "zero", frame.y(tick)
        yield f'<line class="{kind}" x1="{LEFT}" x2="{frame.width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}">{f"{tick:g}".replace("-", "−")}</text>'
    for place, label in enumerate(labels):
        yield f'<text class="label" x="{frame.x(place + 0.5):.1f}" y="{HEIGHT - 8}">{escape(label)}</text>'


def _ticks(values: Sequence[float]) -> list[float]:
    """Return round numbers around the values, zero included."""
    low, high = min([0, *values]), max([0, *values])
    rough = (high - low) / 5 or 1
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [n * step for n in range(first, max(last, first + 1) + 1)]


def _hint(label: str, name: str, value: float) -> str:
    return f"<title>{escape(label)}, {escape(name)}: {value:.1f} min</title>"
