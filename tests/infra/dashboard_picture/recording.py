"""Metrics and failures of a mesh, by the minute, as a JSON file."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

FILE = Path(__file__).parent / "recording.json"

Values = dict[int, list[float]]
"""The values of each minute since the start."""


@dataclass(frozen=True)
class Series:
    """The values of one metric in the namespace `Asya`.

    Attributes:
        metric: the name.
        dimensions: all dimensions.
        values: the values.
    """

    metric: str
    dimensions: dict[str, str]
    values: Values


@dataclass(frozen=True)
class Recording:
    """What a mesh has measured and logged.

    Attributes:
        origin: how it was recorded, for people.
        start: the first minute, in UTC.
        minutes: the length.
        series: the metrics.
        failures: the last log lines about failures with their fields, the newest first.
    """

    origin: str
    start: datetime
    minutes: int
    series: list[Series]
    failures: list[dict[str, str]]

    def time(self, minute: int) -> str:
        """Return a minute as time of day."""
        return f"{self.start + timedelta(minutes=minute):%H:%M}"


def read() -> Recording:
    """Read the recording of this folder."""
    stored = json.loads(FILE.read_text())
    series = [
        Series(**{**each, "values": {int(minute): values for minute, values in each["values"].items()}})
        for each in stored["series"]
    ]
    return Recording(**{**stored, "start": datetime.fromisoformat(stored["start"]), "series": series})


def write(recording: Recording) -> None:
    """Write the recording of this folder, with one series or failure per line."""
    stored = {**asdict(recording), "start": recording.start.isoformat()}
    lines = [f'"{key}": {json.dumps(stored[key])}' for key in ("origin", "start", "minutes")]
    for key in ("series", "failures"):
        items = ",\n  ".join(json.dumps(each) for each in stored[key])
        lines.append(f'"{key}": [\n  {items}\n ]')
    FILE.write_text("{\n " + ",\n ".join(lines) + "\n}\n")
